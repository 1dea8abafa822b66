"""``python -m papers`` run in this process, as a shell would run it."""

from papers.__main__ import app
from tests import commands


def reproduce(*arguments):
    return commands.run(*arguments, app=app)


def refused(*arguments):
    return commands.fails(*arguments, app=app)
