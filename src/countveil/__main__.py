"""``python -m countveil``: the command line where its script is not on the path."""

from countveil.cli.app import app

if __name__ == "__main__":
    app(prog_name="countveil")
