"""The web page: `serve` shows a root to one's own browser, and changes nothing. Needs `pip install 'sparklog[ui]'`."""

from sparklog.errors import SparklogError

try:
    from sparklog.ui.metrics import serve_metrics
    from sparklog.ui.server import application, serve
except ModuleNotFoundError as error:
    raise SparklogError("UI_EXTRA", module=error.name) from None

__all__ = ["application", "serve", "serve_metrics"]
