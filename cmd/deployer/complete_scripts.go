package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"deployer/internal/lazyregexp"
)

func completionCommand(e *env) *cli.Command {
	var plain bool
	return &cli.Command{
		Name: "completion", Usage: "print a completion script for your shell", ArgsUsage: "bash|zsh|fish|powershell",
		Description: `The script completes commands, flags and their values, releases, revisions,
namespaces, contexts, charts and versions. It waits two seconds at most for the
cluster.

Examples:
  source <(deployer completion bash)
  deployer completion zsh > "${fpath[1]}/_deployer"
  deployer completion fish > ~/.config/fish/completions/deployer.fish
  deployer completion powershell | Out-String | Invoke-Expression

Exit codes: 0 done; 1 there is no such shell`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-descriptions", Usage: "leave out descriptions", Destination: &plain},
		},
		Action: action(1, 1, "bash, zsh, fish or powershell", func(_ context.Context, args []string) error {
			script, ok := completionScripts[args[0]]
			if !ok {
				return suggest(usagef("completion", "no completion script for %q; there are bash, zsh, fish and powershell", args[0]),
					args[0], []string{"bash", "zsh", "fish", "powershell"})
			}
			asks := completionCommandName
			if plain {
				asks = plainCompletionCommandName
			}
			return printTo(e.streams.Data(), strings.NewReplacer("PROGRAM", e.call.completedName(), "COMPLETE", asks).Replace(script))
		}),
	}
}

// completedName is the file name that the program was called by: scripts complete
// renamed programs too.
func (c call) completedName() string {
	if c.asHelm {
		return c.name
	}
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(c.path)), ".exe")
	if !completableName().MatchString(name) {
		return c.name
	}
	return name
}

// completableName is a name that can be part of a function's in all shells.
var completableName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// completionScripts by shell. PROGRAM is the program's name, COMPLETE the
// hidden command.
var completionScripts = map[string]string{
	"bash": `# bash completion for PROGRAM

__start_PROGRAM() {
    # Not COMP_WORDS: those are cut at = and :
    local line=${COMP_LINE:0:COMP_POINT} typed cur word prefix directive=:4
    read -ra typed <<<"$line"
    [[ $line == *[[:space:]] ]] && typed+=("")
    cur=${typed[${#typed[@]}-1]}
    COMPREPLY=()
    while IFS= read -r word; do
        case $word in
        :[0-9]*) directive=$word ;;
        "$cur"*) COMPREPLY+=("${word%%$'\t'*}") ;;
        esac
    done < <(eval "${typed[0]} COMPLETE $(printf '%q ' "${typed[@]:1}")" 2>/dev/null)
    [ $directive = :6 ] && compopt -o nospace 2>/dev/null
    if [ ${#COMPREPLY[@]} -gt 0 ]; then
        # Bash puts in the place of what follows the last = or : only.
        prefix=${cur%"${cur##*[=:]}"}
        COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    elif [ $directive != :0 ]; then
        compopt +o default 2>/dev/null
    fi
}

# Where nothing is offered, bash completes file names.
complete -o default -F __start_PROGRAM PROGRAM
`,
	"zsh": `#compdef PROGRAM
# zsh completion for PROGRAM

_PROGRAM() {
    local line word directive=:4
    local -a described
    for line in "${(@f)$("${words[1]}" COMPLETE "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        :[0-9]*) directive=$line ;;
        '') ;;
        *)
            word=${line%%$'\t'*}
            if [[ $line == *$'\t'* ]]; then
                described+=("${word//:/\\:}:${line#*$'\t'}")
            else
                described+=("${word//:/\\:}")
            fi
            ;;
        esac
    done
    if [[ $directive == :6 ]]; then
        _describe -V completions described -S ''
    elif (( ${#described} )); then
        _describe -V completions described
    fi
    if [[ $directive == :0 ]]; then
        compset -P '*='
        _files
    fi
}

if [ "$funcstack[1]" = "_PROGRAM" ]; then
    _PROGRAM "$@"
else
    compdef _PROGRAM PROGRAM
fi
`,
	"fish": `# fish completion for PROGRAM

function __PROGRAM_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l directive :4
    for line in ($typed[1] COMPLETE $typed[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':*'
                set directive $line
            case '*'
                echo $line
        end
    end
    if test $directive = :0
        __fish_complete_path (string replace -r '^-[^=]*=' '' -- "$current")
    end
end

complete -c PROGRAM -e
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
`,
	"powershell": `# PowerShell completion for PROGRAM

Register-ArgumentCompleter -Native -CommandName 'PROGRAM' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $typed = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -le $cursorPosition } | ForEach-Object { $_.ToString() })
    $program = $typed[0]
    $rest = @($typed | Select-Object -Skip 1)
    if ($wordToComplete -eq '') { $rest += '""' }
    & $program COMPLETE @rest 2>$null | Where-Object { $_ -notmatch '^:\d+$' } | ForEach-Object {
        $word, $text = $_ -split "` + "`" + `t", 2
        if (-not $text) { $text = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
    }
}
`,
}
