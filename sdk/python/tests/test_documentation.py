from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

from network import URL, ServiceTest

HERE = Path(__file__).resolve().parent.parent


class Readme(ServiceTest):
    PAGE = (HERE / "README.md").read_text()
    BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    def run_as_program(self, text: str, packages: Path, **limits: Any) -> Callable[[], str]:
        """Runs a program with the variables that Session.from_env needs."""
        session = self.new_session(**limits)
        made = self.organization.rotate_agent_secret(self.agent.id)
        settings = {
            "REMIT_ADDR": URL, "REMIT_AGENT": self.agent.id, "REMIT_SECRET": made.secret.reveal(),
            "REMIT_SESSION": session.id, "PYTHONPATH": os.pathsep.join([str(packages), str(HERE / "tests" / "clients")]),
        }

        def run() -> str:
            with tempfile.TemporaryDirectory() as elsewhere:
                done = subprocess.run(
                    [sys.executable, "-c", text], env={**os.environ, **settings}, cwd=elsewhere,
                    capture_output=True, text=True, timeout=30,
                )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout + done.stderr

        return run

    def test_the_first_example_runs(self) -> None:
        """The first example is a complete program of at most ten lines."""
        self.assertLessEqual(len([line for line in self.BLOCKS[0].splitlines() if line.strip()]), 10)
        run = self.run_as_program(self.BLOCKS[0], HERE / "src", max_actions=2, max_value="0.5")
        self.assertEqual(run(), "1 actions and 0.13 USD left\n")
        self.assertEqual(run(), "out of max_value_usd: nothing was charged\n")

    def test_the_code_blocks_run_in_order(self) -> None:
        self.assertGreater(len(self.BLOCKS), 4)
        printed = self.run_as_program("\n".join(self.BLOCKS), HERE / "src")()
        for words in (
            "999 actions and 99.63 USD left\n", "committed at 1.99 USD\n", "\n2.64\n0.64\n", "\nleases charged 4.38 USD in all\n",
            " session.created\n", "\nnothing about owls\n", "\n['owls', 'mice']\n", "\nSnowy owls\nBarn owls\n",
        ):
            self.assertIn(words, printed)

    def test_the_example_of_a_test_runs(self) -> None:
        (example,) = re.findall(r"```py\n(.*?)```", self.PAGE, re.DOTALL)
        with tempfile.TemporaryDirectory() as elsewhere:
            Path(elsewhere, "test_agent.py").write_text(example)
            done = subprocess.run(
                [sys.executable, "-W", "error", "-m", "unittest"], env={**os.environ, "PYTHONPATH": str(HERE / "src")}, cwd=elsewhere,
                capture_output=True, text=True, timeout=60,
            )
        self.assertIn("Ran 1 test", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_install_command_names_the_package(self) -> None:
        """The test does not install the package, because that needs setuptools from PyPI."""
        line = re.search(r"```sh\npython3 -m pip install \./(\S+)\n```", self.PAGE)
        assert line
        self.assertEqual(HERE.parent.parent / line[1], HERE)
        project = (HERE / "pyproject.toml").read_text()
        where = re.search(r'\[tool\.setuptools\.packages\.find\]\nwhere = \["(\w+)"\]', project)
        assert where
        self.assertEqual([d.parent.name for d in (HERE / where[1]).glob("*/__init__.py")], ["remit"])
        self.assertTrue((HERE / where[1] / "remit" / "py.typed").exists() and "py.typed" in project)


class AgentLoop(ServiceTest):
    def test_the_agent_loop_ends_with_its_task_or_its_budget(self) -> None:
        for max_value, status, last in (
            (5, 0, "used: 9 of 1000 actions, 0.68 of 5 USD\n"),
            # Two steps of the model with two searches, then the third step. The payment exceeds the budget.
            (
                "0.30", 3, "stopped: max_value_usd is reached, 995 actions and 0.19 USD are left\n"
                "used: 5 of 1000 actions, 0.11 of 0.3 USD\n",
            ),
        ):
            session = self.new_session(max_value=max_value)
            made = self.organization.rotate_agent_secret(self.agent.id)
            settings = {
                "REMIT_ADDR": URL, "REMIT_AGENT": self.agent.id, "REMIT_SECRET": made.secret.reveal(),
                "REMIT_SESSION": session.id, "PYTHONPATH": str(HERE / "src"),
            }
            run = subprocess.run(
                [sys.executable, str(HERE / "examples/agent_loop.py")],
                env={**os.environ, **settings}, capture_output=True, text=True, timeout=30,
            )
            self.assertEqual((run.returncode, run.stdout[-len(last):]), (status, last), run.stdout + run.stderr)
            self.assertEqual("paying" in run.stdout, status == 0)


class Planner(ServiceTest):
    def test_the_planner_prints_what_its_page_shows(self) -> None:
        organization = self.new_organization()
        made = organization.create_agent("planner", ["sessions:delegate"])
        assert made.secret is not None
        session = self.client.agent(made.id, made.secret).session(
            organization.create_session(made.id, max_value=2, max_actions=100).id
        )
        settings = {
            "REMIT_ADDR": URL, "REMIT_AGENT": made.id, "REMIT_SECRET": made.secret.reveal(), "REMIT_SESSION": session.id,
            "PYTHONPATH": str(HERE / "src"),
        }
        run = subprocess.run(
            [sys.executable, str(HERE / "examples/planner.py")],
            env={**os.environ, **settings}, capture_output=True, text=True, timeout=30,
        )
        page = (HERE.parent.parent / "docs/planner.md").read_text()
        self.assertIn(f"```text\n{run.stdout}```", page, run.stderr)
        used = [child.value_used for child in session.tree().children]
        self.assertEqual((run.returncode, sum(used), session.get().value_used), (0, Decimal("0.96"), Decimal("1.26")))


class Source(unittest.TestCase):
    def test_every_file_is_python_3_9(self) -> None:
        files = [f for folder in ("src", "tests", "examples") for f in (HERE / folder).rglob("*.py")]
        self.assertGreater(len(files), 20)
        for file in files:
            ast.parse(file.read_text(), str(file), feature_version=(3, 9))

    def test_nothing_but_the_standard_library_is_imported(self) -> None:
        if sys.version_info < (3, 10):
            self.assertTrue(True)  # this version has no list of standard modules; the other versions check
            return
        others = set()
        for file in (HERE / "src").rglob("*.py"):
            tree = ast.parse(file.read_text())
            for node in ast.walk(tree):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                for name in {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names):
                    self.assertNotIn(node, tree.body, "it is imported when it is needed")
                    others.add((file.name, name))
        # The extra of pyproject.toml, and what type checkers alone read.
        self.assertEqual(others, {("keys.py", "cryptography"), ("parameters.py", "typing_extensions")})

    def test_amounts_never_pass_through_floats(self) -> None:
        for name in ("money.py", "usage.py", "prices.py", "pricetable.py"):
            for node in ast.walk(ast.parse((HERE / "src/remit" / name).read_text())):
                where = f"{name}:{getattr(node, 'lineno', '')}"
                self.assertFalse(isinstance(node, ast.Name) and node.id == "float", where)
                self.assertFalse(isinstance(node, ast.Constant) and type(node.value) is float, where)
                self.assertNotIsInstance(node, ast.Div, where)
