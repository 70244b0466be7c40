"""`moorage run --shadow`: decide for the pods of another scheduler, write nothing, compare."""
