package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/test/suite"
)

// TestImportsFollowTheArchitecture checks which package of the project imports which, as docs/architecture.md says.
func TestImportsFollowTheArchitecture(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"remit":                            {"remit/internal/service"},
		"remit/internal/service":           {"remit/console", "remit/internal/cli", "remit/internal/gateway", "remit/internal/jwksfetch", "remit/internal/keys", "remit/internal/redisproc", "remit/internal/service/operator", "remit/internal/token", "remit/internal/webhook", "remit/money", "remit/redisstore", "remit/server", "remit/server/budgets", "remit/server/identity", "remit/server/pages", "remit/server/webhooks"},
		"remit/internal/service/operator":  {"remit/internal/cli", "remit/internal/token", "remit/redisstore"},
		"remit/internal/gateway":           {"remit/client/prices", "remit/client/wire", "remit/money", "remit/redisstore", "remit/server", "remit/server/budgets", "remit/server/conn", "remit/server/pages"},
		"remit/console":                    {"remit/client", "remit/internal/chart", "remit/money", "remit/redisstore", "remit/server/pages"},
		"remit/server":                     {"remit/internal/jwksfetch", "remit/internal/token", "remit/openapi", "remit/redisstore", "remit/redisstore/records", "remit/server/budgets", "remit/server/conn", "remit/server/identity", "remit/server/internal/access", "remit/server/internal/web", "remit/server/pages", "remit/server/records", "remit/server/webhooks"},
		"remit/server/identity":            {"remit/internal/metrics", "remit/internal/outbound", "remit/internal/token", "remit/money", "remit/redisstore", "remit/server/internal/access", "remit/server/internal/web"},
		"remit/server/budgets":             {"remit/internal/metrics", "remit/money", "remit/redisstore", "remit/server/internal/access", "remit/server/internal/web"},
		"remit/server/records":             {"remit/internal/token", "remit/redisstore", "remit/redisstore/records", "remit/server/conn", "remit/server/internal/access", "remit/server/internal/web"},
		"remit/server/webhooks":            {"remit/internal/outbound", "remit/internal/token", "remit/internal/webhook", "remit/redisstore", "remit/redisstore/webhooks", "remit/server/internal/access", "remit/server/internal/web", "remit/server/records"},
		"remit/server/pages":               {"remit/internal/token", "remit/redisstore", "remit/server/conn", "remit/server/internal/access", "remit/server/internal/web"},
		"remit/server/internal/access":     {"remit/internal/jwksfetch", "remit/internal/metrics", "remit/internal/token", "remit/redisstore", "remit/server/internal/web"},
		"remit/server/internal/web":        {"remit/internal/event", "remit/internal/metrics", "remit/internal/token", "remit/money", "remit/redisstore", "remit/server/conn"},
		"remit/redisstore":                 {"remit/internal/event", "remit/internal/redisclient", "remit/money", "remit/redisstore/internal/feed", "remit/redisstore/internal/kernel", "remit/redisstore/records", "remit/redisstore/webhooks"},
		"remit/redisstore/records":         {"remit/internal/redisclient", "remit/money", "remit/redisstore/internal/kernel"},
		"remit/redisstore/webhooks":        {"remit/internal/redisclient", "remit/redisstore/internal/kernel"},
		"remit/redisstore/internal/feed":   {"remit/internal/event", "remit/internal/redisclient", "remit/redisstore/internal/kernel"},
		"remit/redisstore/internal/kernel": {"remit/internal/event", "remit/internal/redisclient", "remit/lua", "remit/money"},

		"remit/internal/cli":         {"remit/client", "remit/client/prices", "remit/internal/auditlog", "remit/internal/chart", "remit/money"},
		"remit/internal/auditlog":    {"remit/internal/event", "remit/internal/token"},
		"remit/internal/event":       {"remit/money"},
		"remit/internal/keys":        {"remit/internal/token", "remit/redisstore"},
		"remit/internal/webhook":     {"remit/internal/outbound", "remit/internal/token", "remit/redisstore", "remit/redisstore/records", "remit/redisstore/webhooks"},
		"remit/internal/jwksfetch":   {"remit/internal/outbound", "remit/internal/token"},
		"remit/internal/redisclient": {"remit/internal/metrics"},

		"remit/client":             {"remit/money"},
		"remit/client/mcp":         {"remit/client", "remit/money"},
		"remit/client/metered":     {"remit/client", "remit/client/prices", "remit/client/wire", "remit/money"},
		"remit/client/prices":      {"remit/money"},
		"remit/client/wire":        {"remit/client/prices", "remit/money"},
		"remit/remittest":          {"remit/client", "remit/internal/token", "remit/redisstore", "remit/server"},
		"remit/openapi/samples/go": {"remit/client", "remit/money"},

		"remit/loadtest":       {"remit/loadtest/fleet"},
		"remit/loadtest/fleet": {"remit/client", "remit/internal/chart", "remit/internal/redisproc", "remit/money"},
		"remit/bench/report":   {"remit/internal/chart", "remit/internal/redisproc"},
		"remit/scripts/show":   {"remit/lua"},

		"remit/test/conformance":        {"remit/openapi"},
		"remit/test/fakeprovider/serve": {"remit/test/fakeprovider"},
		"remit/test/faults":             {"remit/internal/auditlog", "remit/internal/redisproc", "remit/loadtest/fleet", "remit/money", "remit/client", "remit/client/prices", "remit/test/fakeprovider", "remit/test/serviceproc", "remit/test/suite"},
		"remit/test/redistest":          {"remit/internal/redisproc", "remit/test/suite"},
		"remit/test/same":               {"remit/client", "remit/client/metered", "remit/client/prices", "remit/money"},
		"remit/test/sdkcodes":           {"remit/openapi"},
	}
	importNone := strings.Fields("server/conn lua openapi money internal/token internal/outbound internal/redisproc internal/metrics " +
		"internal/chart bench bench/bare bench/proxy deploy deploy/monitoring scripts/sbom sdk test/browser test/clients test/docs " +
		"test/fakeprovider test/hostile test/interop test/mutants test/prover test/release test/serviceproc test/suite " +
		"test/testreport test/tool")
	for _, name := range importNone {
		allowed["remit/"+name] = nil
	}
	output := suite.Must(exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...", "remit/client/...", "remit/money/...").Output())(t)
	for line := range strings.Lines(string(output)) {
		imports := strings.Fields(line)
		mayImport, known := allowed[imports[0]]
		if !known {
			t.Errorf("%s is a new package: say here what it may import, and why in docs/architecture.md", imports[0])
		}
		for _, imported := range imports[1:] {
			if strings.HasPrefix(imported, "remit") && !slices.Contains(mayImport, imported) {
				t.Errorf("%s must not import %s", imports[0], imported)
			}
		}
	}
}

// mostFiles is how many Go files a package may have, tests not counted, before it is split.
const mostFiles = 60

func TestAPackageFitsIntoAHead(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for path := range goFiles(t, ".") {
		count[filepath.Dir(path)]++
	}
	if count["server"] == 0 {
		t.Fatal("it counts nothing")
	}
	for directory, files := range count {
		if files > mostFiles {
			t.Errorf("%s has %d Go files; at most %d", directory, files, mostFiles)
		}
	}
}

// mostElsewhere is how many of the store's methods that a file of server calls may stand in a file of another name.
const mostElsewhere = 11

// TestACallOfTheStoreLeadsToTheFileOfItsStem counts the methods of the store that each file of server calls: who reads
// server/budgets/lease.go finds what it calls in redisstore/lease.go. The rest is printed.
func TestACallOfTheStoreLeadsToTheFileOfItsStem(t *testing.T) {
	t.Parallel()
	declared := map[string]string{} // a method of Store → the stem of its file
	for path, file := range goFiles(t, "redisstore") {
		for _, declaration := range file.Decls {
			if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.IsExported() && slices.Contains([]string{"Store", "Reader", "Registry"}, receiver(method)) {
				declared[method.Name.Name] = stem(path)
			}
		}
	}
	var same int
	var apart []string
	for path, file := range goFiles(t, "server") {
		for _, method := range storeCalls(file) {
			switch where, ok := declared[method]; {
			case !ok:
			case where == stem(path):
				same++
			default:
				apart = append(apart, path+" calls "+method+" of "+where+".go")
			}
		}
	}
	slices.Sort(apart)
	t.Logf("%d of %d calls lead to the file of the same stem; these do not:\n%s", same, same+len(apart), strings.Join(apart, "\n"))
	if len(apart) > mostElsewhere || same == 0 {
		t.Errorf("%d calls of the store lead to another file, more than %d", len(apart), mostElsewhere)
	}
}

// goFiles parses the Go files of a directory and of all below it that are no tests.
func goFiles(t *testing.T, directory string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func receiver(method *ast.FuncDecl) string {
	of := method.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// storeCalls are the methods that a file takes of a store, each once.
func storeCalls(file *ast.File) []string {
	var methods []string
	ast.Inspect(file, func(node ast.Node) bool {
		method, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch of := method.X.(type) {
		case *ast.Ident:
			ok = of.Name == "store"
		case *ast.SelectorExpr:
			ok = strings.EqualFold(of.Sel.Name, "store")
		default:
			ok = false
		}
		if ok && !slices.Contains(methods, method.Sel.Name) {
			methods = append(methods, method.Sel.Name)
		}
		return true
	})
	return methods
}

// stem is the name of a Go file without what says when it is built.
func stem(path string) string { return built.ReplaceAllString(filepath.Base(path), "") }

var built = regexp.MustCompile(`(_internal|_long|_linux|_other)*(_test)?\.go$`)

// TestAGoFileIsFoundAtTheFirstGuess finds the names of Go files that can be spelled in two ways: with underscores, or in the
// singular and the plural.
func TestAGoFileIsFoundAtTheFirstGuess(t *testing.T) {
	t.Parallel()
	output := suite.Must(exec.Command("git", "ls-files", "*.go").Output())(t)
	files := strings.Fields(string(output))
	for _, file := range files {
		name := strings.TrimSuffix(file, filepath.Base(file)) + stem(file)
		if strings.Contains(stem(file), "_") {
			t.Errorf("%s has an underscore that does not say when it is built", file)
		}
		for _, plural := range []string{name + "s.go", strings.TrimSuffix(name, "y") + "ies.go"} {
			if slices.Contains(files, name+".go") && slices.Contains(files, plural) {
				t.Errorf("%s.go and %s cannot be told apart", name, plural)
			}
		}
	}
	if len(files) == 0 {
		t.Error("no Go files")
	}
}
