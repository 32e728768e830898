"""Formulas: expressions, templates, paths and JSONPath over
JSON. They are compiled once and evaluated within limits."""
