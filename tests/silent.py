"""A watcher that shows nothing and remembers what it was told."""

from countveil.common.console import Watcher


class Silent(Watcher):
    def __init__(self):
        self.heard = []

    def stage(self, name):
        self.heard.append(name)

    def begin(self, total):
        self.total = total

    def started(self, name):
        pass

    def finished(self, name, seconds):
        self.heard.append(name)
