"""Costs, floors and laws: formulas that know no export."""
