package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Arrange returns a line's arguments as the parser takes them, for people type them in other orders too:
//
//	remit --addr URL agent list   flags of a command may stand before it
//	remit help agent create       is remit agent create --help
//	remit --listen ADDRESS        a line without a command is one of serve
func Arrange(app *kong.Application, args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	flags, rest := leadingFlags(app, args)
	if len(rest) == 0 {
		if asksForHelp(flags) {
			return flags
		}
		return append([]string{"serve"}, flags...)
	}
	words := commandWords(app.Node, rest)
	if words == 0 {
		return rest // the parser suggests a command; it would complain of the flags first
	}
	return slices.Concat(rest[:words], flags, rest[words:])
}

// asksForHelp reports whether the line is about the program as a whole.
func asksForHelp(flags []string) bool {
	return len(flags) == 1 && slices.Contains([]string{"-h", "--help", "--version"}, flags[0])
}

// leadingFlags splits the arguments before the first that is neither a flag nor a flag's value.
func leadingFlags(app *kong.Application, args []string) (flags, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "--" {
			return args[:i], args[i:]
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !hasValue && takesValue(app.Node, name) {
			i++
		}
	}
	return args, nil
}

// takesValue reports whether any command has such a flag with a value behind it.
func takesValue(node *kong.Node, name string) bool {
	for _, flag := range node.Flags {
		if flag.Name == name {
			return !flag.IsBool()
		}
	}
	return slices.ContainsFunc(node.Children, func(child *kong.Node) bool { return takesValue(child, name) })
}

// commandWords is how many of the first words name a command.
func commandWords(node *kong.Node, words []string) int {
	for n, word := range words {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool {
			return child.Type == kong.CommandNode && (child.Name == word || slices.Contains(child.Aliases, word))
		})
		if i < 0 {
			return n
		}
		node = node.Children[i]
	}
	return len(words)
}
