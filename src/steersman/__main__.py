"""`python -m steersman`: the same as the installed command."""

from steersman.bootstrap import main

if __name__ == "__main__":
    raise SystemExit(main())
