"""What unittest may be given to load: files and names that are the project's own, never Python's.

unittest imports the module of any name, and a folder that it does not find is one: `python -m unittest antigravity`
opens a browser, `test.test_bool` proves that Python works.
**Invariant:** a name that may be a module of Python's own is no value.
"""

from steersman.judges.grammar import Value
from steersman.judges.grammars.values import PATH

# The modules of every Python from 3.8 on; those that begin with "_" are refused by their form.
_NAMES = """
abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii
binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys
compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses
datetime dbm decimal difflib dis distutils doctest dummy_threading email encodings ensurepip enum errno faulthandler
fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext glob
graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools
json keyword lib2to3 linecache locale logging lzma macpath mailbox mailcap marshal math mimetypes mmap modulefinder
msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev
parser pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile profiling
pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter
runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd
sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symbol
symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios test textwrap this threading time timeit
tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest
urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile
zipimport zlib zoneinfo
"""
PYTHONS_OWN = frozenset(_NAMES.split())
_OWN = "|".join(sorted(PYTHONS_OWN))
_PART = r"[^\W\d_]\w*+"

MODULE = Value(
    name="NAME",
    meaning="the file of a test, or its dotted name, which is none of Python's own; with test in it",
    pattern=rf"(?=(?i:.*test))(?:(?!(?:{_OWN}|discover)(?:\.|\Z)|.*\.py\Z){_PART}(?:\.\w++)*+|(?:{PATH.pattern})(?<=\.py))",
    path=r"(.+\.py\Z|[^.]+)",
    there=True,
    opens="loaded",
)
PACKAGE = Value(
    name="PACKAGE",
    meaning="a package that lies at the top of the tree and is none of Python's own",
    pattern=rf"(?!(?:{_OWN})(?:\.|\Z)){_PART}(?:\.\w++)*+",
    path=r"([^.]+)",
    there=True,
)
FOLDER = Value(
    name="FOLDER",
    meaning="a folder inside the tree whose name is no module of Python's own",
    pattern=rf"\.|(?!(?:{'|'.join(sorted(PYTHONS_OWN - {'test'}))})/*\Z)(?:\w[\w-]*+|(?=.*/)(?:{PATH.pattern}))/?",
    path=r"(.+)",
    there=True,
    opens="loaded",
)
TEST_FILES = Value(
    name="GLOB",
    meaning="names of test files, such as test_*.py",
    pattern=r"(?=.{0,199}[Tt]est)(?!-)[\w*?\[\]-]{1,200}(?:\.py)?",
)
