/* What every signed-in page loads. Each module adds one behaviour or one element;
   pages add their own with the block `scripts`. */
import "hf/vars";
import "hf/theme";
import "hf/toast";
import "hf/confirm";
import "hf/dialog";
import "hf/keyboard";
import "hf/jump";
import "hf/focus";
import "hf/menu";
import "hf/tabs";
import "hf/copy";
import "hf/fold";
import "hf/values";
import "hf/ago";
import "hf/live";
import "hf/unattended";
import "hf/loadbar";
