// Command shell_parser reads shell commands and lists what each would run.
//
// Standard input is one JSON object with `texts`, and `home`, the home folder of the user who runs them, empty if that is
// not known. Standard output has one JSON line for each text, in order: the simple commands in it, flat, or the reason
// why there are none. Nothing is run, opened or looked up. Any exit code but 0 means that no answer may be used.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

const (
	mostInput    = 4 << 20   // bytes of all texts
	mostBytes    = 64 << 10  // bytes of one text
	mostMarks    = 2_000     // operators and brackets of one text
	mostCommands = 256       // simple commands of one text
	mostDepth    = 64        // nested substitutions, groups and loops
	mostWords    = 4_096     // words of all commands of one text, after braces are expanded
	mostFolders  = 8         // folders in which one command may run
	mostRepeated = 256       // words that loops list again, for each value of their variable
	mostFollowed = 16        // variables of one text whose values are followed
	mostText     = 256 << 10 // bytes of those words, as often as braces and groups repeat them
	cpuSeconds   = 2
	wallSeconds  = 4
)

// Word is one word of a command: its value, a pattern of file names, or why its value is not known.
type Word struct {
	Value   *string `json:"value,omitempty"`
	Pattern *string `json:"pattern,omitempty"`
	Unknown string  `json:"unknown,omitempty"`
}

// Assign is a variable that is set, for one command or from there on.
type Assign struct {
	Name string `json:"name"`
	Word
}

// Redirect is where a descriptor leads.
type Redirect struct {
	Op string `json:"op"`
	Word
}

// Command is one simple command, and the syntax around it. Folders are those in which it may run, from the folder of the
// text; none if that is not known. Behind `cd a;` there are two, because it may fail. Input is the number of the command
// whose output it reads, and nothing else, from 1.
type Command struct {
	Folders   []string   `json:"folders,omitempty"`
	Input     int        `json:"input,omitempty"`
	Words     []Word     `json:"words"`
	Assigns   []Assign   `json:"assigns"`
	Redirects []Redirect `json:"redirects"`
	Syntax    []string   `json:"syntax"`
}

// Answer is what a text would run, or why that is not known: control, size, nesting, syntax.
type Answer struct {
	Refused  string    `json:"refused,omitempty"`
	Commands []Command `json:"commands"`
}

type input struct {
	Home  string   `json:"home"`
	Texts []string `json:"texts"`
}

type refusal struct{ reason string }

type lister struct {
	file      *syntax.File
	home      string // what `~` stands for; empty if that is not known
	commands  []Command
	values    map[string]Word // of the variables whose value is known
	followed  int             // variables that were looked for in the whole text
	patterns  bool            // whether a value may be a pattern here
	repeated  int             // words that loops listed again
	syntax    []string        // around the current place, from the outside in
	redirects []Redirect      // of the groups and loops around it
	assigns   []Assign        // of the loops around it
	marks     []string        // of words whose command is not listed yet
	folders   []string        // where the next command may run; none if that is not known
	passed    []string        // where a command before it in the same list may have gone
	input     int             // the number of the command whose output the next statement reads
	words     int
	text      int  // bytes of words
	redefines bool // whether `cat` may be another program
}

func main() {
	if len(os.Args) > 1 {
		version()
		return
	}
	limit := syscall.Rlimit{Cur: cpuSeconds, Max: cpuSeconds}
	if syscall.Setrlimit(syscall.RLIMIT_CPU, &limit) != nil {
		os.Exit(2)
	}
	time.AfterFunc(wallSeconds*time.Second, func() { os.Exit(3) })
	data, err := io.ReadAll(io.LimitReader(os.Stdin, mostInput+1))
	var given input
	if err != nil || len(data) > mostInput || json.Unmarshal(data, &given) != nil {
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, text := range given.Texts {
		if out.Encode(list(text, given.Home)) != nil {
			os.Exit(2)
		}
	}
}

// version prints the version of the parser and of Go, as `opa version` does.
func version() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "mvdan.cc/sh/v3" {
			fmt.Println("Version:", strings.TrimPrefix(module.Version, "v"))
		}
	}
	fmt.Println("Go Version:", info.GoVersion)
}

func list(text, home string) (answer Answer) {
	if reason := refused(text); reason != "" {
		return Answer{Refused: reason, Commands: []Command{}}
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil || misread(file) {
		return Answer{Refused: "syntax", Commands: []Command{}}
	}
	defer func() {
		if found := recover(); found != nil {
			var known refusal
			if err, ok := found.(error); !ok || !errors.As(err, &known) {
				panic(found)
			}
			answer = Answer{Refused: known.reason, Commands: []Command{}}
		}
	}()
	l := &lister{file: file, commands: []Command{}, values: map[string]Word{}, redefines: redefines(file)}
	if !l.redefines {
		l.folders = []string{""}
	}
	l.knows(home)
	l.stmts(file.Stmts)
	if len(l.marks) > 0 {
		return Answer{Refused: "syntax", Commands: []Command{}}
	}
	return Answer{Commands: l.commands}
}

// misread tells whether the parser reads a text as no shell does: where a comment ends with a backslash, it takes the
// next line as a part of the same command. And zsh does not read `${ ls; }` as commands.
func misread(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Comment:
			found = found || strings.HasSuffix(node.Text, "\n")
		case *syntax.CmdSubst:
			found = found || node.TempFile || node.ReplyVar
		}
		return !found
	})
	return found
}

// knows takes note of the home folder, unless its name is not plain, or the text may set another one.
func (l *lister) knows(home string) {
	found, mentioned, looped := settings(l.file, "HOME")
	if plainValue.MatchString(home) && !found && mentioned+looped == 0 && !sets(l.file, "IFS") && !evaluates(l.file) {
		l.home, l.values["HOME"] = home, plain(home)
	}
}

func (r refusal) Error() string { return r.reason }

func refuse(reason string) { panic(refusal{reason}) }

// refused looks at a text before it is parsed: bytes that shells read differently, and what would take long.
func refused(text string) string {
	if len(text) > mostBytes {
		return "size"
	}
	for _, char := range []byte(text) {
		if (char < ' ' && char != '\t' && char != '\n') || char == 0x7f {
			return "control"
		}
	}
	if ambiguous.MatchString(text) {
		return "syntax"
	}
	marks := 0
	for _, mark := range "({`|&;" {
		marks += strings.Count(text, string(mark))
	}
	if marks > mostMarks {
		return "nesting"
	}
	return ""
}

// ambiguous is what the parser and shells read differently: a dollar, or a digit of a redirection, at the end of a
// continued line, a backslash at the end of the text, and a digit before `&>`, which zsh takes for a descriptor.
var ambiguous = regexp.MustCompile(`\$\\\n|[0-9]\\\n[<>]|\\$|(?:^|[\s;&|<>()])[0-9]&>`)

// within carries out what is inside one more piece of syntax.
func (l *lister) within(name string, redirects []Redirect, inside func()) {
	if len(l.syntax) >= mostDepth {
		refuse("nesting")
	}
	syntax, outer := l.syntax, l.redirects
	l.syntax = append(syntax[:len(syntax):len(syntax)], name)
	l.redirects = append(outer[:len(outer):len(outer)], redirects...)
	inside()
	l.syntax, l.redirects = syntax, outer
}

func (l *lister) stmts(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		before := maps.Clone(l.values)
		if or, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && orExit(or) && !stmt.Negated && !stmt.Background {
			l.stmt(stmt)
		} else {
			l.perhaps(func() { l.stmt(stmt) })
		}
		l.forget(before, stmt)
	}
}

// forget keeps the values from before a statement, and those that it has set for certain: in its first command.
func (l *lister) forget(before map[string]Word, stmt *syntax.Stmt) {
	for cmd, ok := stmt.Cmd.(*syntax.BinaryCmd); ok; cmd, ok = stmt.Cmd.(*syntax.BinaryCmd) {
		stmt = cmd.X
	}
	if first, ok := stmt.Cmd.(*syntax.CallExpr); ok {
		for _, assign := range first.Assigns {
			if value, known := l.values[assign.Name.Value]; known {
				before[assign.Name.Value] = value
			}
		}
	}
	l.values = before
}

// orExit tells whether what follows only runs if the first command succeeded: `cd a || exit 1`.
func orExit(or *syntax.BinaryCmd) bool {
	return or.Op == syntax.OrStmt && exits(or.Y)
}

// exits tells whether a statement ends the shell for certain: `exit 1`, `{ echo no; exit 1; }`.
func exits(stmt *syntax.Stmt) bool {
	if stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		// with a second word, bash goes on
		return len(cmd.Assigns) == 0 && (len(cmd.Args) == 1 || len(cmd.Args) == 2 && number(cmd.Args[1].Lit())) &&
			cmd.Args[0].Lit() == "exit"
	case *syntax.Block:
		return len(cmd.Stmts) > 0 && exits(cmd.Stmts[len(cmd.Stmts)-1])
	}
	return false
}

// number tells whether a text is digits only.
func number(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// perhaps lists what may fail halfway: after it, the folder may be the one from before, or any that it passed.
func (l *lister) perhaps(list func()) {
	before, passed := l.folders, l.passed
	l.passed = []string{}
	list()
	l.folders = joined(joined(before, l.passed), l.folders)
	l.passed = append(passed, l.passed...)
}

// joined is the folders of both lists; none if one is not known.
func joined(some, others []string) []string {
	if some == nil || others == nil {
		return nil
	}
	found := append(some[:len(some):len(some)], others...)
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > mostFolders {
		return nil
	}
	return found
}

// apart lists what runs in a shell of its own, which leaves the folder as it is.
func (l *lister) apart(list func()) {
	before, passed := l.folders, l.passed
	list()
	l.folders, l.passed = before, passed
}

// again lists what may run several times or not at all: in no known folder, if it changes the folder.
func (l *lister) again(node syntax.Node, list func()) {
	syntax.Walk(node, func(node syntax.Node) bool {
		if called, ok := node.(*syntax.CallExpr); ok && len(called.Args) > 0 && moving[called.Args[0].Lit()] {
			l.folders = nil
		}
		return true
	})
	list()
}

// moving are commands that change the folder.
var moving = map[string]bool{"cd": true, "pushd": true, "popd": true}

// moved changes the folder after a command that succeeded.
func (l *lister) moved(words []Word, assigns []Assign) {
	if words[0].Value == nil || !moving[*words[0].Value] || l.folders == nil {
		return
	}
	known := *words[0].Value == "cd" && len(words) == 2 && len(assigns) == 0 && words[1].Value != nil
	if !known || *words[1].Value == "" || strings.IndexByte("-~", (*words[1].Value)[0]) >= 0 {
		l.folders = nil
		return
	}
	folders := []string{}
	for _, folder := range l.folders {
		if folder == "" || strings.HasPrefix(*words[1].Value, "/") {
			folder = *words[1].Value
		} else {
			folder += "/" + *words[1].Value
		}
		folders = append(folders, folder)
	}
	l.folders = slices.Compact(folders)
	l.passed = append(l.passed, l.folders...)
}

func (l *lister) stmt(stmt *syntax.Stmt) {
	input := l.input
	l.input = 0
	l.patterns = false
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		background := *stmt
		background.Background, background.Coprocess, background.Disown = false, false, false
		l.within("background", nil, func() { l.apart(func() { l.stmt(&background) }) })
		return
	}
	if stmt.Negated {
		positive := *stmt
		positive.Negated = false
		l.perhaps(func() { l.stmt(&positive) })
		return
	}
	redirects := l.redirections(stmt.Redirs)
	switch cmd := stmt.Cmd.(type) {
	case nil:
		l.add([]Word{plain(":")}, nil, redirects)
	case *syntax.CallExpr:
		l.call(cmd, redirects)
		if input > 0 && !reads(stmt.Redirs) {
			l.commands[len(l.commands)-1].Input = input
		}
	case *syntax.BinaryCmd:
		name := map[syntax.BinCmdOperator]string{
			syntax.AndStmt: "and", syntax.OrStmt: "or", syntax.Pipe: "pipe", syntax.PipeAll: "pipe",
		}[cmd.Op]
		if name == "" {
			refuse("syntax")
		}
		first, second := func() { l.stmt(cmd.X) }, func() { l.stmt(cmd.Y) }
		l.within(name, redirects, func() {
			switch name {
			case "and":
				first()
				second()
			case "or":
				if orExit(cmd) {
					var succeeded []string
					l.perhaps(func() { first(); succeeded = l.folders })
					second()
					l.folders = succeeded
				} else {
					l.perhaps(func() { l.perhaps(first); l.perhaps(second) })
				}
			default:
				l.input = input
				l.apart(first)
				l.input = 0
				if cmd.Op == syntax.Pipe && l.prints(cmd.X) {
					l.input = len(l.commands)
				}
				l.perhaps(second) // in zsh, in the same shell
			}
		})
	case *syntax.Subshell:
		l.within("subshell", redirects, func() { l.apart(func() { l.stmts(cmd.Stmts) }) })
	case *syntax.Block:
		l.within("group", redirects, func() { l.stmts(cmd.Stmts) })
	case *syntax.IfClause:
		l.within("if", redirects, func() { l.again(cmd, func() { l.ifs(cmd) }) })
	case *syntax.WhileClause:
		l.within("loop", redirects, func() { l.again(cmd, func() { l.stmts(cmd.Cond); l.stmts(cmd.Do) }) })
	case *syntax.ForClause:
		l.within("loop", redirects, func() { l.again(cmd, func() { l.loop(cmd) }) })
	case *syntax.CaseClause:
		l.within("case", redirects, func() { l.again(cmd, func() { l.cases(cmd) }) })
	case *syntax.FuncDecl:
		l.within("function", redirects, func() { l.stmt(cmd.Body) })
	case *syntax.TimeClause:
		l.within("time", redirects, func() {
			if cmd.Stmt != nil {
				l.stmt(cmd.Stmt)
			}
		})
	case *syntax.CoprocClause:
		l.within("background", redirects, func() { l.apart(func() { l.stmt(cmd.Stmt) }) })
	case *syntax.DeclClause:
		l.declare(cmd, redirects)
	case *syntax.LetClause:
		l.arithmetic("let", cmd, redirects)
	case *syntax.ArithmCmd:
		l.arithmetic(":", cmd, redirects)
	case *syntax.TestClause:
		l.test(cmd, redirects)
	default:
		refuse("syntax")
	}
}

// prints tells whether a statement is one simple command that prints into a pipe, and nothing but its output.
func (l *lister) prints(stmt *syntax.Stmt) bool {
	for cmd, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && cmd.Op == syntax.Pipe; cmd, ok = stmt.Cmd.(*syntax.BinaryCmd) {
		stmt = cmd.Y
	}
	_, ok := stmt.Cmd.(*syntax.CallExpr)
	for _, redir := range stmt.Redirs {
		ok = ok && redir.N != nil && redir.N.Value == "2" && redir.Op == syntax.RdrOut
	}
	return ok && !l.redefines && !stmt.Negated && !stmt.Background && !stmt.Coprocess && !stmt.Disown
}

// reads tells whether one of these redirections may be another input.
func reads(redirs []*syntax.Redirect) bool {
	return slices.ContainsFunc(redirs, func(redir *syntax.Redirect) bool { return redir.Op.String()[0] == '<' })
}

// follow takes note of the values of variables that a command sets for what comes after it, where nothing else may set
// them, and no shell means something by their names.
func (l *lister) follow(cmd *syntax.CallExpr, assigns []Assign) {
	for _, name := range l.syntax {
		if name != "and" && name != "group" {
			return
		}
	}
	for index, one := range assigns {
		known := one.Value != nil && !strings.Contains(*one.Value, "~") && !cmd.Assigns[index].Append
		if !known || !ordinary.MatchString(one.Name) || l.followed == mostFollowed {
			continue
		}
		l.followed++
		found, mentioned, looped := settings(l.file, one.Name)
		if !found && mentioned == 1 && looped == 0 && !sets(l.file, "IFS") {
			l.values[one.Name] = one.Word
		}
	}
}

// ordinary are names of variables that a shell only keeps. Others in capitals may mean something to it, such as PWD.
var ordinary = regexp.MustCompile(`^(?:[a-z][A-Za-z0-9_]*|[A-Z])$`)

func (l *lister) add(words []Word, assigns []Assign, redirects []Redirect) {
	l.words += len(words) + len(assigns) + len(redirects) + len(l.redirects) + len(l.assigns) + len(l.marks)
	for _, word := range words {
		l.text += len(word.text())
	}
	for _, folder := range l.folders {
		l.text += len(folder)
	}
	for _, some := range [][]Assign{assigns, l.assigns} {
		for _, one := range some {
			l.text += len(one.Name) + len(one.text())
		}
	}
	for _, some := range [][]Redirect{redirects, l.redirects} {
		for _, one := range some {
			l.text += len(one.text())
		}
	}
	if len(l.commands) >= mostCommands || l.words > mostWords || l.text > mostText {
		refuse("size")
	}
	l.commands = append(l.commands, Command{
		Folders:   l.folders,
		Words:     append([]Word{}, words...),
		Assigns:   append(append([]Assign{}, l.assigns...), assigns...),
		Redirects: append(append([]Redirect{}, l.redirects...), redirects...),
		Syntax:    append(append([]string{}, l.syntax...), l.marks...),
	})
	l.marks = nil
}

func (l *lister) call(cmd *syntax.CallExpr, redirects []Redirect) {
	assigns := l.assigned(cmd.Assigns)
	words := []Word{}
	for _, arg := range cmd.Args {
		l.patterns = true
		words = append(words, l.expanded(arg)...)
	}
	l.patterns = false
	if len(words) == 0 {
		words = []Word{plain(":")}
	}
	l.add(words, assigns, redirects)
	l.moved(words, assigns)
	if len(cmd.Args) == 0 && len(redirects) == 0 && !l.redefines {
		l.follow(cmd, assigns)
	}
}

// arithmetic is a command that only calculates; what that may carry out is named by its mark.
func (l *lister) arithmetic(name string, node syntax.Node, redirects []Redirect) {
	l.inside(node)
	l.marks = append(l.marks, "arithmetic")
	l.add([]Word{plain(name)}, nil, redirects)
}

func (l *lister) assigned(assigns []*syntax.Assign) []Assign {
	found := []Assign{}
	for _, assign := range assigns {
		one := Assign{Name: "", Word: Word{Unknown: "assignment"}}
		if assign.Name != nil {
			one.Name = assign.Name.Value
		}
		switch {
		case assign.Array != nil || assign.Index != nil:
			l.inside(assign)
			l.marks = append(l.marks, "arithmetic")
		case assign.Value != nil:
			one.Word = l.word(assign.Value)
		case !assign.Append:
			one.Word = plain("")
		}
		found = append(found, one)
	}
	return found
}

func (l *lister) declare(cmd *syntax.DeclClause, redirects []Redirect) {
	words, assigns := []Word{plain(cmd.Variant.Value)}, []Assign{}
	for _, arg := range cmd.Args {
		switch {
		case arg.Naked && arg.Name == nil && arg.Value != nil:
			words = append(words, l.word(arg.Value))
		case arg.Naked:
			words = append(words, plain(arg.Name.Value))
			l.inside(arg)
		default:
			assigns = append(assigns, l.assigned([]*syntax.Assign{arg})...)
		}
	}
	l.add(words, assigns, redirects)
}

func (l *lister) ifs(cmd *syntax.IfClause) {
	l.stmts(cmd.Cond)
	l.stmts(cmd.Then)
	if cmd.Else != nil {
		l.ifs(cmd.Else)
	}
}

func (l *lister) loop(cmd *syntax.ForClause) {
	if cmd.Select {
		refuse("syntax")
	}
	switch head := cmd.Loop.(type) {
	case *syntax.WordIter:
		name, items, outer := head.Name.Value, []Word{}, l.assigns
		for _, item := range head.Items {
			items = append(items, l.expanded(item)...)
		}
		if !l.follows(cmd, name, items) {
			items = []Word{{Unknown: "loop"}}
		}
		for _, item := range items {
			l.values[name] = item
			l.assigns = append(outer[:len(outer):len(outer)], Assign{Name: name, Word: item})
			l.stmts(cmd.Do)
		}
		l.assigns = outer
		delete(l.values, name)
	case *syntax.CStyleLoop:
		l.arithmetic(":", head, nil)
		l.stmts(cmd.Do)
	default:
		refuse("syntax")
	}
}

// follows tells whether the body of a loop is listed for each of these values: all are known, it has the variable, and
// nothing but loops sets it.
func (l *lister) follows(cmd *syntax.ForClause, name string, values []Word) bool {
	if l.redefines || len(values) == 0 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for _, value := range values {
		if value.Unknown != "" || strings.Contains(value.text(), "~") {
			return false
		}
	}
	uses, words := 0, 0
	for _, stmt := range cmd.Do {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			switch node := node.(type) {
			case *syntax.Word:
				words++
			case *syntax.ParamExp:
				uses += mentions(node.Param, name)
			case *syntax.WordIter:
				words += mostRepeated * mentions(node.Name, name) // a loop inside that sets it too
			}
			return true
		})
	}
	cost := (len(values) - 1) * words
	if uses == 0 || l.repeated+cost > mostRepeated || words > mostRepeated {
		return false
	}
	if sets(l.file, name) || sets(l.file, "IFS") { // which splits values outside of quotes
		return false
	}
	l.repeated += cost
	return true
}

// mentions is 1 where a text is the name of this variable, perhaps with what is assigned to it.
func mentions(text *syntax.Lit, name string) int {
	if text == nil {
		return 0
	}
	value, _, _ := unescaped(text.Value)
	rest, found := strings.CutPrefix(value, name)
	if found && (rest == "" || strings.IndexByte("=+[", rest[0]) >= 0) {
		return 1
	}
	return 0
}

// setting are commands that set variables by names in their words.
var setting = map[string]bool{
	"getopts": true, "mapfile": true, "printf": true, "read": true, "readarray": true, "unset": true, "wait": true,
}

// sets tells whether anything in a text but loops may set a variable: any mention of its name, and what may set one whose
// name is not plain.
func sets(file *syntax.File, name string) bool {
	found, mentioned, _ := settings(file, name)
	return found || mentioned > 0
}

// settings tells whether something may set any variable, and counts what names this one, without loops, and loops.
func settings(file *syntax.File, name string) (found bool, mentioned, looped int) {
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Lit:
			mentioned += mentions(node, name)
		case *syntax.SglQuoted:
			mentioned += mentions(&syntax.Lit{Value: node.Value}, name)
		case *syntax.WordIter:
			mentioned -= mentions(node.Name, name)
			looped += mentions(node.Name, name)
		case *syntax.ParamExp:
			mentioned -= mentions(node.Param, name)
			found = found || odd(node)
		case *syntax.ArithmExp:
			found = found || !constant(node.X)
		case *syntax.DeclClause:
			found = found || !exports(node)
		case *syntax.LetClause, *syntax.ArithmCmd, *syntax.CStyleLoop, *syntax.CoprocClause:
			found = true
		case *syntax.CallExpr:
			found = found || len(node.Args) > 0 && setting[plainName(node.Args[0])] && !formats(node.Args)
		case *syntax.UnaryTest, *syntax.BinaryTest:
			found = found || calculates(node)
		}
		return !found
	})
	return found, mentioned, looped
}

// exports tells whether a declaration only exports variables whose names it shows.
func exports(cmd *syntax.DeclClause) bool {
	return cmd.Variant.Value == "export" && !slices.ContainsFunc(cmd.Args, func(arg *syntax.Assign) bool {
		return arg.Name == nil || arg.Index != nil
	})
}

// formats tells whether a command is `printf` with a format in quotes, and so without an option.
func formats(args []*syntax.Word) bool {
	if args[0].Lit() != "printf" || len(args) < 2 {
		return false
	}
	switch part := args[1].Parts[0].(type) {
	case *syntax.SglQuoted:
		return !part.Dollar && part.Value != "" && part.Value[0] != '-'
	case *syntax.DblQuoted:
		if len(part.Parts) > 0 {
			text, ok := part.Parts[0].(*syntax.Lit)
			return ok && strings.IndexByte("-\\", text.Value[0]) < 0
		}
	}
	return false
}

// calculates tells whether a condition calculates, or looks into an array.
func calculates(node syntax.Node) bool {
	switch node := node.(type) {
	case *syntax.UnaryTest:
		return node.Op == syntax.TsVarSet || node.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		switch node.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			return true
		}
	}
	return false
}

func (l *lister) cases(cmd *syntax.CaseClause) {
	l.word(cmd.Word)
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			l.word(pattern)
		}
		l.stmts(item.Stmts)
	}
}

func (l *lister) test(cmd *syntax.TestClause, redirects []Redirect) {
	words, arithmetic := []Word{plain("[[")}, false
	syntax.Walk(cmd.X, func(node syntax.Node) bool {
		if word, ok := node.(*syntax.Word); ok {
			l.patterns = true
			words = append(words, l.word(word))
			return false
		}
		arithmetic = arithmetic || calculates(node)
		return true
	})
	if arithmetic {
		l.marks = append(l.marks, "arithmetic")
	}
	l.add(words, nil, redirects)
}

// numbers is a range of numbers in zsh, between `<` and `>`.
var numbers = regexp.MustCompile(`^[0-9]*-[0-9]*$`)

func (l *lister) redirections(redirs []*syntax.Redirect) []Redirect {
	found := []Redirect{}
	for _, redir := range redirs {
		if redir.N != nil && strings.HasPrefix(redir.N.Value, "{") {
			refuse("syntax")
		}
		one := Redirect{Op: redir.Op.String(), Word: Word{Unknown: "heredoc"}}
		if redir.Hdoc != nil {
			one.Word = plain(l.document(redir))
		} else if redir.Op == syntax.WordHdoc {
			one.Word = l.word(redir.Word)
		} else if redir.Word != nil {
			word := &syntax.Word{Parts: slices.Clone(redir.Word.Parts)}
			syntax.SplitBraces(word) // zsh writes each of these files, and bash none
			one.Word = l.word(word)
			if lit, ok := redir.Word.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "!") {
				one.Word = Word{Unknown: "replaced"} // zsh replaces the file that is named behind it
			}
		}
		duplicates := strings.HasSuffix(one.Op, "&") && strings.HasPrefix(one.text(), "-") && len(one.text()) > 1
		if duplicates || redir.Op == syntax.RdrIn && numbers.MatchString(one.text()) {
			refuse("syntax") // bash closes and reads the rest as a word; zsh matches names of files by `<1-9>`
		}
		found = append(found, one)
	}
	return found
}

// document is the text of a here-document, with a variable in place of what is not known, and lists the commands in it.
func (l *lister) document(redir *syntax.Redirect) string {
	quoted := false
	for _, part := range redir.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		quoted = quoted || !ok || strings.Contains(lit.Value, `\`)
	}
	var text strings.Builder
	for _, part := range redir.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); !ok {
			l.part(part)
			text.WriteString(`"$_"`)
		} else if quoted {
			text.WriteString(lit.Value)
		} else {
			text.WriteString(unquoted(lit.Value))
		}
	}
	return text.String()
}

func plain(value string) Word { return Word{Value: &value} }

// text is a value or a pattern, as far as it is known.
func (w Word) text() string {
	switch {
	case w.Value != nil:
		return *w.Value
	case w.Pattern != nil:
		return *w.Pattern
	}
	return ""
}

// expanded is the words that one word becomes when its braces are expanded.
func (l *lister) expanded(word *syntax.Word) []Word {
	size := int(word.End().Offset() - word.Pos().Offset()) // before it is split: an empty element has no place
	word = &syntax.Word{Parts: slices.Clone(word.Parts)}   // which is changed, and a loop reads it again
	if !syntax.SplitBraces(word) {
		return []Word{l.word(word)}
	}
	found := []Word{}
	for _, one := range l.spread(word, size) {
		written := slices.ContainsFunc(one.Parts, func(part syntax.WordPart) bool {
			lit, ok := part.(*syntax.Lit)
			return !ok || lit.Value != ""
		})
		if written {
			found = append(found, l.word(one))
		} else { // bash leaves it out, and zsh does not
			found = append(found, Word{Unknown: "braces"})
		}
	}
	return found
}

// spread is every word that the braces of a word make, each at most as long as the written one, of `size` bytes;
// sequences such as {1..9} are not written out.
func (l *lister) spread(word *syntax.Word, size int) []*syntax.Word {
	for place, part := range word.Parts {
		braces, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if braces.Sequence {
			return []*syntax.Word{word}
		}
		found := []*syntax.Word{}
		for _, element := range braces.Elems {
			parts := append([]syntax.WordPart{}, word.Parts[:place]...)
			parts = append(append(parts, element.Parts...), word.Parts[place+1:]...)
			found = append(found, l.spread(&syntax.Word{Parts: parts}, size)...)
			if l.words+len(found) > mostWords || len(found)*size > 4*mostText {
				refuse("size")
			}
		}
		return found
	}
	return []*syntax.Word{word}
}

// tilde is what stands for the last folder, the working folder, one of their list, or the home of an oddly named user;
// in zsh, `=ls` is the path of a program.
var tilde = regexp.MustCompile(`(?:^|[=:])~[^/A-Za-z]|^=[^=]`)

// homely tells whether a word begins with the home folder, by a tilde of its own: `~`, `~/a`.
func homely(word *syntax.Word) bool {
	lit, ok := word.Parts[0].(*syntax.Lit)
	return ok && (strings.HasPrefix(lit.Value, "~/") || lit.Value == "~" && len(word.Parts) == 1)
}

// flagged is a variable in zsh that may become words and names of files, such as $=x and $~x.
var flagged = regexp.MustCompile(`(?:^|[^\\]|\\\\)\$[~=^+]`)

// changing is what follows a variable in zsh and takes a part of it, or puts another text in its place: $x[1] and $x:h.
var changing = regexp.MustCompile(`^(?:\[|:[A-Za-z&])`)

// changed tells whether zsh changes the value of a part of a word by the part that follows it.
func changed(parts []syntax.WordPart, at int) bool {
	param, ok := parts[at].(*syntax.ParamExp)
	if !ok || !param.Short || at+1 == len(parts) {
		return false
	}
	lit, ok := parts[at+1].(*syntax.Lit)
	return ok && changing.MatchString(lit.Value)
}

// word is the value of a word, and lists the commands inside it.
func (l *lister) word(word *syntax.Word) Word {
	var text, bare strings.Builder
	pattern, unknown := false, ""
	for at, part := range word.Parts {
		value, glob, why := l.part(part)
		if at == 0 && l.home != "" && homely(word) {
			value = l.home + value[1:]
		}
		if changed(word.Parts, at) {
			why = "parameter"
		}
		text.WriteString(value)
		if lit, ok := part.(*syntax.Lit); ok {
			bare.WriteString(lit.Value)
		} else {
			bare.WriteByte('/') // ends what a tilde may stand for
		}
		pattern = pattern || glob
		if unknown == "" {
			unknown = why
		}
	}
	if unknown == "" && tilde.MatchString(bare.String()) {
		unknown = "tilde"
	}
	if unknown == "" && flagged.MatchString(bare.String()) {
		unknown = "parameter"
	}
	value := text.String()
	if unknown == "" && pattern && strings.Contains(value, "***") { // zsh follows links to folders
		unknown = "pattern"
	}
	switch {
	case unknown != "":
		return Word{Unknown: unknown}
	case pattern && value != "[": // which is a program
		return Word{Pattern: &value}
	}
	return plain(value)
}

// part is the text of a part of a word, whether it is a pattern, and why it is not known.
func (l *lister) part(part syntax.WordPart) (string, bool, string) {
	switch part := part.(type) {
	case *syntax.Lit:
		return unescaped(part.Value)
	case *syntax.SglQuoted:
		if part.Dollar { // dash keeps the dollar
			return "", false, "ansi_c"
		}
		return part.Value, false, ""
	case *syntax.DblQuoted:
		return l.quoted(part)
	case *syntax.BraceExp:
		for _, element := range part.Elems { // which syntax.Walk cannot walk
			l.word(element)
		}
		return "", false, "braces"
	case *syntax.ParamExp:
		if value := l.valueOf(part); value.Value != nil && plainValue.MatchString(*value.Value) {
			return *value.Value, false, ""
		}
		l.inside(part)
		return "", false, "parameter"
	case *syntax.CmdSubst:
		l.inside(part)
		return "", false, "substitution"
	case *syntax.ArithmExp:
		l.inside(part)
		return "", false, "arithmetic"
	case *syntax.ProcSubst:
		l.inside(part)
		return "", false, "process"
	}
	l.marks = append(l.marks, "expansion") // an extended pattern, which zsh may carry out
	l.inside(part)
	return "", false, "pattern"
}

func (l *lister) quoted(part *syntax.DblQuoted) (string, bool, string) {
	var text, bare strings.Builder
	pattern, unknown := false, ""
	if part.Dollar {
		unknown = "translated"
	}
	for at, inner := range part.Parts {
		if value := l.valueOf(inner); (value.Value != nil || value.Pattern != nil) && !changed(part.Parts, at) {
			text.WriteString(value.text())
			pattern = pattern || value.Pattern != nil
			continue
		}
		if lit, ok := inner.(*syntax.Lit); ok {
			text.WriteString(unquoted(lit.Value))
			bare.WriteString(lit.Value)
			continue
		}
		if document, ok := l.catText(inner); ok {
			text.WriteString(document)
			continue
		}
		_, _, why := l.part(inner)
		if changed(part.Parts, at) {
			why = "parameter"
		}
		if unknown == "" {
			unknown = why
		}
	}
	if unknown == "" && flagged.MatchString(bare.String()) {
		unknown = "parameter"
	}
	return text.String(), pattern, unknown
}

// plainValue is a value that a shell neither splits nor expands outside of quotes.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./@%+,=-]+$`)

// valueOf is the value that a loop gives to a variable; none of any other part of a word.
func (l *lister) valueOf(part syntax.WordPart) Word {
	param, ok := part.(*syntax.ParamExp)
	if !ok || param.Param == nil {
		return Word{}
	}
	value, length := l.values[param.Param.Value], int(param.End().Offset()-param.Pos().Offset())-len(param.Param.Value)
	plain := length == len("$") || length == len("${}")
	if !plain || value.Pattern != nil && !l.patterns {
		return Word{}
	}
	return value
}

// catText is the text that `$(cat <<'EOF' … )` stands for in double quotes, which is how several lines get into one
// word; none if `cat` may be another program.
func (l *lister) catText(part syntax.WordPart) (string, bool) {
	substitution, ok := part.(*syntax.CmdSubst)
	if !ok || l.redefines || substitution.Backquotes || len(substitution.Stmts) != 1 {
		return "", false
	}
	stmt := substitution.Stmts[0]
	called, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || len(stmt.Redirs) != 1 ||
		len(called.Assigns) != 0 || len(called.Args) != 1 || called.Args[0].Lit() != "cat" {
		return "", false
	}
	redirect := stmt.Redirs[0]
	if redirect.Op != syntax.Hdoc || redirect.N != nil || redirect.Hdoc == nil || len(redirect.Word.Parts) != 1 ||
		len(redirect.Hdoc.Parts) != 1 {
		return "", false
	}
	quotes, quoted := redirect.Word.Parts[0].(*syntax.SglQuoted)
	text, plain := redirect.Hdoc.Parts[0].(*syntax.Lit)
	if !quoted || quotes.Dollar || !plain {
		return "", false
	}
	return strings.TrimRight(text.Value, "\n"), true
}

// redefining are commands after which a name may be another program; the empty one is a word that is not plain.
var redefining = map[string]bool{
	"": true, ".": true, "alias": true, "builtin": true, "command": true, "enable": true, "eval": true, "hash": true,
	"shopt": true, "source": true, "trap": true,
}

// evaluates tells whether a text may run code that it does not show, or give another meaning to a command.
func evaluates(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(node syntax.Node) bool {
		called, ok := node.(*syntax.CallExpr)
		found = found || ok && len(called.Args) > 0 && redefining[plainName(called.Args[0])]
		return !found
	})
	return found
}

// redefines tells whether a text may make another program of a name: by a function, an alias, the path of programs.
func redefines(file *syntax.File) bool {
	found := evaluates(file)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.FuncDecl:
			found = true
		case *syntax.Lit: // set in any way: assigned, read, the variable of a loop
			found = found || leads(node.Value)
		case *syntax.SglQuoted:
			found = found || leads(node.Value)
		}
		return !found
	})
	return found
}

// leads tells whether a text is a variable that says where programs and folders are looked for, perhaps with its value.
func leads(text string) bool {
	name, _, _ := strings.Cut(text, "=")
	return name == "PATH" || name == "CDPATH"
}

// plainName is the text of a word without quotes and backslashes; empty for any other.
func plainName(word *syntax.Word) string {
	if name := word.Lit(); !strings.ContainsAny(name, `\{`) {
		return name
	}
	return ""
}

// unescaped removes the backslashes of text outside of quotes; a character of a pattern counts where it has none.
func unescaped(text string) (string, bool, string) {
	var value strings.Builder
	pattern := false
	for index := 0; index < len(text); index++ {
		char := text[index]
		if char == '\\' && index+1 < len(text) {
			index++
			if text[index] != '\n' {
				value.WriteByte(text[index])
			}
			continue
		}
		pattern = pattern || strings.IndexByte("*?[", char) >= 0
		value.WriteByte(char)
	}
	return value.String(), pattern, ""
}

// unquoted removes the backslashes that count between double quotes.
func unquoted(text string) string {
	var value strings.Builder
	for index := 0; index < len(text); index++ {
		if text[index] == '\\' && index+1 < len(text) && strings.IndexByte("$`\"\\\n", text[index+1]) >= 0 {
			index++
			if text[index] == '\n' {
				continue
			}
		}
		value.WriteByte(text[index])
	}
	return value.String()
}

// inside lists the commands in a node that is no statement, and names what of it turns data into code.
func (l *lister) inside(root syntax.Node) {
	syntax.Walk(root, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst:
			l.within("substitution", nil, func() { l.apart(func() { l.stmts(node.Stmts) }) })
			return false
		case *syntax.ProcSubst:
			l.within("process", nil, func() { l.apart(func() { l.stmts(node.Stmts) }) })
			return false
		case *syntax.ArithmExp:
			if !constant(node.X) {
				l.marks = append(l.marks, "arithmetic")
			}
		case *syntax.ParamExp:
			if odd(node) {
				l.marks = append(l.marks, "expansion")
			}
		}
		return true
	})
}

// constant tells whether arithmetic has numbers only; a variable in it may be code.
func constant(expression syntax.ArithmExpr) bool {
	numbers := true
	syntax.Walk(expression, func(node syntax.Node) bool {
		switch node := node.(type) {
		case nil, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.Word:
		case *syntax.Lit:
			numbers = numbers && strings.Trim(node.Value, "0123456789") == ""
		default:
			numbers = false
		}
		return true
	})
	return numbers
}

// status tells whether an expansion is the exit code of a command in a pipe: ${PIPESTATUS[0]}.
func status(node *syntax.ParamExp) bool {
	index, ok := node.Index.(*syntax.Word)
	return ok && node.Param.Value == "PIPESTATUS" && (number(index.Lit()) || index.Lit() == "@" || index.Lit() == "*")
}

// odd tells whether an expansion does more than give a value or another one in its place.
func odd(node *syntax.ParamExp) bool {
	if node.Excl || node.Index != nil && !status(node) || node.Slice != nil || node.Names != 0 {
		return true
	}
	if node.Exp == nil {
		return false
	}
	switch node.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
		return true
	}
	return false
}
