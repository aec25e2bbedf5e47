"""Turn this process into a server: `python launch.py PARENT ROOT COMMAND...`; the pid stays the same."""

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1


def enter(root: str) -> None:
    """Make `root` the file system's root."""
    if root != "/":
        os.chroot(root)
    # The caller's directory may be closed to the user that the server runs as.
    os.chdir("/")


def drop_root(user: pwd.struct_passwd) -> None:
    """Become the user for good, if root: PostgreSQL refuses to run as root, and MySQL should not."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that comes about."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before it could be watched.
    if os.getppid() != parent:
        sys.exit("the parent has ended")


def main(parent: str, root: str, *command: str) -> None:
    """Run the command in `root`, without root's rights, until the parent ends."""
    user = pwd.getpwnam("nobody")
    enter(root)
    drop_root(user)
    # After the change of user, which clears the setting.
    die_with(int(parent))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
