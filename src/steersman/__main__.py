"""The installed command, and `python -m steersman`: almost nothing is imported before Ctrl-C is heard."""

INTERRUPTED = 130  # 128 + SIGINT


def main() -> int:
    """The command line, from its first import on."""
    try:
        from steersman.bootstrap import main as start

        return start()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
