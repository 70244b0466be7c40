"""Files that are meant to crash or hang: one line and exit code 2, for every input of a file."""

import pytest

DEEP = "a: " + "[" * 80_000
BOMB = "a0: &a0 [1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize("text", [pytest.param(DEEP, id="deep"), pytest.param(BOMB, id="aliases")])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["simulate", "-f", "FILE"], id="simulate -f"),
        pytest.param(["explain", "default/web", "-f", "FILE"], id="explain -f"),
        pytest.param(["serve", "--port", "0", "-f", "FILE"], id="serve -f"),
        pytest.param(["config", "validate", "FILE"], id="configuration"),
        pytest.param(["snapshot", "--kubeconfig", "FILE"], id="--kubeconfig"),
        pytest.param(["simulate", "scenario", "FILE"], id="scenario"),
    ],
)
def test_rejected_in_one_line(run, write, command, text):
    file = write("hostile.yaml", text)
    got = run(*(file if each == "FILE" else each for each in command))
    assert got.exit_code == 2, got.stderr
    assert len(got.stderr.splitlines()) == 1
    assert "nested more than" in got.stderr or "aliases add more" in got.stderr
