"""Whether the shipped noise keeps what it promises, judged by its output alone.

``audit`` runs every check on every route by which counts become reports. A check fails where what was seen has a
probability below CRITICAL under the promise; so the whole audit raises a false alarm in fewer than one of 10^5
runs, and each finding says what it would have detected.
"""

from countveil.study.audit.checks import Finding, Route, audit, audit_layout, audit_route, shipped_routes

__all__ = ["Finding", "Route", "audit", "audit_layout", "audit_route", "shipped_routes"]
