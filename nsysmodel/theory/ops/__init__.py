"""Cost functions of operation kinds: shapes and formats in, work of one execution on one rank out."""
