package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is appended to the command's help.
func (completion) Help() string {
	return `bash: source <(remit completion bash). zsh: source <(remit completion zsh). fish: remit completion fish | source. Put the line into the shell's startup file to keep it.`
}

// Run prints a script for the shell, which then runs this program to complete a line.
func (c completion) Run() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = fmt.Print(completionScript(c.Shell, path))
	return err
}

// completionScript returns a script that completes with the program at the path. It quotes the path, which kong-completion's
// own script does not, and quotes it twice because bash and zsh evaluate the argument of -C again.
func completionScript(shell, path string) string {
	complete := "complete -o default -o bashdefault -C " + quoted(quoted(path)) + " remit\n"
	switch shell {
	case "zsh":
		return "autoload -U +X bashcompinit && bashcompinit\n" + complete
	case "fish":
		return `function __complete_remit
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    '` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(path) + `'
end
complete -f -c remit -a "(__complete_remit)"
`
	}
	return complete
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+,:-]+$`)

// quoted returns text as one word of a POSIX shell.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Complete prints completions and ends the process when a shell has set COMP_LINE. Otherwise it does nothing, so that it does
// not slow down the start of the service.
func Complete(parser *kong.Kong) {
	if os.Getenv("COMP_LINE") != "" {
		kongcompletion.Register(parser)
	}
}
