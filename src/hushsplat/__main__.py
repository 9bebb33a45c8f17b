"""`python -m hushsplat` is the command `hushsplat`."""

from hushsplat.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
