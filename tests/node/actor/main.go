// Actor is what runs in the containers of a test: it plays one part, named by its first argument.
//
//	actor wait              until it is told to end
//	actor end CODE [AFTER]  ends with that code, after a duration such as 2s
//	actor answer ADDRESS    answers HTTP requests with 200 until it is told to end
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func refuse(err error) {
	fmt.Fprintln(os.Stderr, "actor:", err)
	os.Exit(64)
}

func argument(number int) string {
	if number >= len(os.Args) {
		refuse(fmt.Errorf("argument %d is missing", number))
	}
	return os.Args[number]
}

func end() {
	code, err := strconv.Atoi(argument(2))
	if err != nil {
		refuse(err)
	}
	if len(os.Args) > 3 {
		after, err := time.ParseDuration(os.Args[3])
		if err != nil {
			refuse(err)
		}
		time.Sleep(after)
	}
	fmt.Println("actor: ends with", code)
	os.Exit(code)
}

func answer(response http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(response, "actor answers")
}

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	switch part := argument(1); part {
	case "wait":
	case "end":
		end()
	case "answer":
		address := argument(2)
		go func() { refuse(http.ListenAndServe(address, http.HandlerFunc(answer))) }()
	default:
		refuse(fmt.Errorf("unknown part %q", part))
	}
	<-told
}
