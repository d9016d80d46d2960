# Shortcuts; run them in an activated environment with `pip install -e '.[dev]'`.
.PHONY: test lint golden report fixtures structures

test:
	pytest

lint:
	ruff check .
	ruff format --check .
	mypy

golden:
	pytest tests/golden --update-golden

report:
	nsysmodel report fixtures/qwen3-30b-decode-gh200.sqlite --model qwen3-30b

fixtures:
	python fixtures/build.py

structures:
	python -m nsysmodel.judge.structures
