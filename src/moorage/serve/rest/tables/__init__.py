"""What `kubectl get` prints: the server chooses the columns, a folder of printers fills them."""

from moorage.serve.rest.tables.table import table

__all__ = ["table"]
