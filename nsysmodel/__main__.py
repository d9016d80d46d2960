"""`python -m nsysmodel`."""

from nsysmodel.cli import main

main(prog_name="nsysmodel")
