//go:build long

package sdk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
)

// The packages work in an empty project that has nothing but their tarballs. Each entry point wants the framework that it is named
// after, and no other.
func TestTheTypeScriptPackagesWorkFromTheirTarballs(t *testing.T) {
	t.Parallel()
	project := projectWith(t, typeScriptDir, adaptersDir)
	if found, err := filepath.Glob(filepath.Join(project, "node_modules", "[^.]*")); err != nil || len(found) != 1 || filepath.Base(found[0]) != "@remit" {
		t.Errorf("%q is installed: %v", found, err)
	}

	write(t, project, "program.mjs", `
import { LimitReached, usd } from "@remit/sdk";
import { meteredFetch } from "@remit/sdk/fetch";
import { Metering } from "@remit/sdk/metering";
import { Prices } from "@remit/sdk/prices";
import { startRemit } from "@remit/adapters/testing";

for (const name of ["ai", "langchain", "mcp", "openai-agents"]) {
  await import("@remit/adapters/" + name).then(() => console.log(name, "loads"), (error) => console.log(name, "wants", /package '([^']+)'/.exec(error.message)?.[1]));
}
const remit = await startRemit({ limits: { maxValue: usd("0.02") } });
await remit.session.charge({ value: usd("0.02") });
const prices = Prices.parse('{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}}');
const body = JSON.stringify({ model: "m", max_tokens: 1 });
try {
  await meteredFetch(remit.session, prices)("http://127.0.0.1:1/v1/chat/completions", { method: "POST", body });
} catch (error) {
  console.log(error instanceof LimitReached, typeof Metering);
}
await remit.stop();
`)
	printed := strings.Split(strings.TrimSpace(inProject(t, project, "node", "program.mjs")), "\n")
	want := []string{
		"ai loads", "langchain wants @langchain/core", "mcp loads", "openai-agents wants @openai/agents", "true function",
	}
	if !slices.Equal(printed, want) {
		t.Errorf("the program prints %q, want %q", printed, want)
	}

	write(t, project, "typed.ts", `
import { Session, usd } from "@remit/sdk";
import { meteredFetch, type MeteredFetchOptions } from "@remit/sdk/fetch";
import { Prices } from "@remit/sdk/prices";

const options: MeteredFetchOptions = { actionType: "llm.call", models: { mine: "m" } };
export const metered: typeof globalThis.fetch = meteredFetch(Session.fromEnv(), Prices.parse("{}"), options) as typeof globalThis.fetch;
export const amount: bigint = usd("0.01");
`)
	compiler := must(filepath.Abs(filepath.Join(adaptersDir, "node_modules", ".bin", "tsc")))(t)
	inProject(t, project, compiler, "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--module", "nodenext",
		"--target", "es2022", "--lib", "es2022,dom,dom.iterable,esnext.disposable", "--types", "", "typed.ts")
}

// projectWith returns the directory of an empty project in which the tarballs of these directories are installed.
func projectWith(t *testing.T, dirs ...string) string {
	t.Helper()
	buildAdapters(t)
	project := t.TempDir()
	write(t, project, "package.json", `{"name": "empty", "private": true, "type": "module"}`)
	install := []string{"install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps"}
	for _, dir := range dirs {
		packed := strings.Fields(inNodeDir(t, dir, nodeTimeout, nil, "npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", project))
		install = append(install, filepath.Join(project, packed[len(packed)-1]))
	}
	inProject(t, project, "npm", install...)
	return project
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	noError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func inProject(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	return inNodeDir(t, dir, 10*time.Minute, []string{"REMIT_BINARY=" + must(serviceproc.Program())(t)}, name, args...)
}
