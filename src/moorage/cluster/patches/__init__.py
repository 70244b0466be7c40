"""The patch formats: JSON patch, JSON merge patch, strategic merge patch, server-side apply."""
