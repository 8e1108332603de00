"""How large things may get. README.md gives the reasons."""

SOURCE_LENGTH = 16_384  # characters of one expression
NESTING = 64  # brackets, arguments and parentheses inside each other
CHAIN = 200  # operators, selections or calls that hang on each other
DATA_DEPTH = 128  # levels of lists and maps in a value that is walked (compared, returned, printed)
PATTERN_LENGTH = 1_000  # characters of a regular expression
PATTERN_PROGRAM = 5_000  # instructions of a compiled regular expression
PATTERN_MEMORY = 1 << 19  # bytes that RE2 may use for one pattern
PATTERNS = 100  # of matches() in one text, and in a tree of texts: each may take some milliseconds to be compiled
FORMAT_PRECISION = 100  # digits after the point in format()

STEPS = 50_000  # default budget of one evaluation
MEMORY = 1 << 20  # default budget of one evaluation, bytes that it may build

FOLDING_STEPS = 5_000  # budget for working out constant parts when compiling
FOLDING_MEMORY = 1 << 16

CACHED_EXPRESSIONS = 1_024
CACHED_TEMPLATES = 1_024
CACHED_PATTERNS = 64

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
