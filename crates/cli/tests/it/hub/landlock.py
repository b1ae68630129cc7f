# Runs a program that may read everything and write only some directories: DIRECTORY... -- PROGRAM ARGUMENT...
import ctypes, os, struct, sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH, NO_NEW_PRIVS = 1, 38
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
READ = EXECUTE | READ_FILE | READ_DIR
# Every right of the first version of Landlock, and moving and truncating files.
ALL = (1 << 15) - 1

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def allow(ruleset, path, rights):
    directory = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = struct.pack("=Qi", rights, directory)
    call(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    os.close(directory)


split = sys.argv.index("--")
directories, program = sys.argv[1:split], sys.argv[split + 1 :]
attributes = struct.pack("=Q", ALL)
ruleset = call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
allow(ruleset, "/", READ)
allow(ruleset, "/dev", ALL)
for directory in directories:
    allow(ruleset, directory, ALL)
libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
call(RESTRICT_SELF, ruleset, 0)
os.execvp(program[0], program)
