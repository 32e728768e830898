"""What is asked of web services: requests made of data, HTTP tools, tools read out of OpenAPI documents."""
