"""`python -m moorage` is `moorage`."""

from moorage.cli.main import main

if __name__ == "__main__":
    main()
