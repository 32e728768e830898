"""The formulas: expressions, templates, paths and JSONPath over JSON; compiled once, evaluated within bounds."""
