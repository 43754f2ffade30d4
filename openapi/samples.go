package openapi

import (
	_ "embed"
	"regexp"
	"strings"
)

// The samples are programs that a test runs against a service. The page shows the lines between
// "sample: <operationId>" and "end".
var (
	//go:embed samples/go/main.go
	goMain string
	//go:embed samples/go/identity.go
	goIdentity string
	goSamples  = goMain + goIdentity

	//go:embed samples/samples.ts
	typeScriptSamples string
	//go:embed samples/samples.py
	pythonSamples string
)

// sample is the code that calls an operation in one language.
type sample struct{ Language, Code string }

var samplePart = regexp.MustCompile(`(?sm)^[ \t]*(?://|#) sample: (\w+)\n(.*?)^[ \t]*(?://|#) end\n`)

// samplesOf returns the samples of an operation. The SDKs do not cover every operation.
func samplesOf(operation string) []sample {
	var found []sample
	for _, program := range []sample{{"Go", goSamples}, {"TypeScript", typeScriptSamples}, {"Python", pythonSamples}} {
		for _, part := range samplePart.FindAllStringSubmatch(program.Code, -1) {
			if part[1] == operation {
				found = append(found, sample{program.Language, dedent(part[2])})
			}
		}
	}
	return found
}

// dedent removes the indentation of the first line from every line.
func dedent(code string) string {
	code = strings.TrimRight(code, " \t\n")
	indentation := code[:len(code)-len(strings.TrimLeft(code, " \t"))]
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indentation)
	}
	return strings.Join(lines, "\n")
}
