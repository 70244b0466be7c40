"""The tables that `kubectl get` prints: the server chooses the columns and fills the cells."""
