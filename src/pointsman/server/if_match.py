"""Evaluation of `If-Match`: see `pointsman.etags`."""

from __future__ import annotations

from pointsman.etags import etag_of as etag_of
from pointsman.etags import held as held
from pointsman.etags import revision_of as revision_of
