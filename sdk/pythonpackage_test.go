package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"remit/test/serviceproc"
	"remit/test/tool"
)

// useOfThePackage calls a service with the installed package, by blocking and from asyncio, and prints where the package is.
const useOfThePackage = `
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
import remit
from remit import hooks, prices, testing

client = remit.Client.from_env()
organization = client.organization(client.create_organization("acme").api_key)
scout = organization.create_agent("scout", ["read"])
budget = organization.create_session(scout.id, max_value=1)
client.agent(scout.id, scout.secret).session(budget.id).charge("search", "0.25")

async def main():
    async with remit.AsyncRemit.from_env() as client:
        session = client.agent(scout.id, scout.secret).session(budget.id)
        async with session.transaction("search", value="0.5"):
            pass
        return (await session.get()).value_used

print(asyncio.run(main()), os.path.relpath(remit.__file__, sys.argv[1]))
`

// The package that users install holds all of its modules, and they work without any other package.
func TestThePythonPackageInstallsFromItsArchive(t *testing.T) {
	t.Parallel()
	python, dir, service := packager(t), t.TempDir(), serviceproc.Run(t)
	source, archives, target := filepath.Join(dir, "source"), filepath.Join(dir, "archives"), filepath.Join(dir, "target")
	noError(t, os.CopyFS(source, os.DirFS("python"))) // a build leaves files beside its sources

	run := func(in string, args ...string) string {
		t.Helper()
		cmd := tool.Command(t.Context(), in, python, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PYTHONDONTWRITEBYTECODE=1", "REMIT_ADDR=" + service.URL}
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, output)
		}
		return string(output)
	}
	run(source, "-c", "import setuptools.build_meta as b; b.build_sdist('../archives')")
	archive, err := filepath.Glob(filepath.Join(archives, "*.tar.gz"))
	if err != nil || len(archive) != 1 {
		t.Fatalf("%q is built: %v", archive, err)
	}
	run(dir, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-cache-dir", "--target", target, archive[0])
	must(os.Stat(filepath.Join(target, "remit", "py.typed")))(t)
	// -I and -S: without the modules of this checkout and of the machine.
	if got := strings.TrimSpace(run(dir, "-I", "-S", "-c", useOfThePackage, target)); got != "0.75 remit/__init__.py" {
		t.Errorf("it prints %q", got)
	}
}

// packager returns a python3 that builds and installs packages without a network.
func packager(t *testing.T) string {
	t.Helper()
	for _, candidate := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), candidate, "-c", "import setuptools, pip, wheel").Run() == nil {
			return candidate
		}
	}
	t.Fatal("no python3 with pip, setuptools and wheel is installed; scripts/install-tools.sh installs it")
	return ""
}
