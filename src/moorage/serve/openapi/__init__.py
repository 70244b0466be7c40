"""OpenAPI documents, generated from the table of fields and from custom resource definitions."""
