"""HTTP requests built from data, HTTP tools, and import of tools from OpenAPI documents."""
