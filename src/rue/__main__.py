"""`python -m rue` is `rue`."""

from rue.cli.app import main

__all__ = ()

if __name__ == "__main__":
    main()
