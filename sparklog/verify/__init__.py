"""Checks a whole root against docs/FORMAT.md, with code that shares nothing with the connector, and reports every fault."""

from sparklog.verify.report import Finding, NotRead, Report, Waiting
from sparklog.verify.run import verify

__all__ = ["Finding", "NotRead", "Report", "Waiting", "verify"]
