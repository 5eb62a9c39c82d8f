"""The web page: `serve` shows a root to one's own browser, and changes nothing. Needs `pip install 'sparklog[ui]'`."""

from sparklog.ui.server import application, serve

__all__ = ["application", "serve"]
