"""Tables of a SQLite file decoded page by page with numpy, many times faster than row by row.

Used for what it understands wholly: finished UTF-8 files, ordinary tables with rowids, values of the asked
kind. Anything else raises `DeclinedError`, and SQLite reads the table. No byte of a file can make it read
outside the file or loop: page numbers and offsets are checked, and a walk visits no page twice.
"""

from nsysmodel.export.pages.alike import UnlikeError
from nsysmodel.export.pages.database import Database, DeclinedError
from nsysmodel.export.pages.layout import layout
from nsysmodel.export.pages.shapes import Layout
from nsysmodel.export.pages.table import Progress, count, mapped, read

__all__ = [
    "Database", "DeclinedError", "Layout", "Progress", "UnlikeError", "count", "layout", "mapped", "read",
]  # fmt: skip
