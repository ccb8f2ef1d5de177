"""The installed command, and `python -m steersman`: almost nothing is imported before Ctrl-C is heard."""

SIGINT_EXIT_CODE = 130  # 128 + SIGINT


def main() -> int:
    """The command line, from its first import on."""
    try:
        from steersman.wiring import run_steersman as run_steersman_main

        return run_steersman_main()
    except KeyboardInterrupt:
        return SIGINT_EXIT_CODE


if __name__ == "__main__":
    raise SystemExit(main())
