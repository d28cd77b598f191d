"""What the README shows is what happens."""

import re
import socket

from conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_python(server, capsys):
    [block] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(block.replace("11211", str(server.port)), {})
    assert capsys.readouterr().out.startswith("{'seed': b'hazelnut', 'found': b'1'}\n")


def test_shell(server):
    session = r"\$ printf '(.*?)' \| nc 127\.0\.0\.1 11211\n(.*?)\n\n"
    request, shown = re.search(session, README, re.DOTALL).groups()
    expected = "".join(line.strip() + "\r\n" for line in shown.splitlines())
    with socket.create_connection(server.address) as connection:
        connection.sendall(request.encode().decode("unicode_escape").encode())
        reply = connection.makefile("rb").read().decode()
    assert reply == expected
