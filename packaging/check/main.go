// Check decodes files of packaging/ strictly, by the types of those who read them:
//
//	check manifests FILE...   Kubernetes manifests, by k8s.io/api and the Prometheus operator
//	check dashboards FILE...  Grafana dashboards, by the Grafana Foundation SDK
//
// `cargo xtask kubernetes` runs it. It needs no cluster and no Grafana.
package main

import (
	"fmt"
	"os"
)

// A check reads one file and returns what is wrong with it, and the number of objects in it.
type check func(text []byte) (problems []string, objects int)

func main() {
	checks := map[string]check{"manifests": checkManifests, "dashboards": checkDashboard}
	if len(os.Args) < 3 || checks[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: check manifests|dashboards FILE...")
		os.Exit(2)
	}
	failed := false
	for _, path := range os.Args[2:] {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		problems, objects := checks[os.Args[1]](text)
		for _, problem := range problems {
			fmt.Fprintf(os.Stderr, "%s: %s\n", path, problem)
			failed = true
		}
		fmt.Printf("%s: %d objects, %d problems\n", path, objects, len(problems))
	}
	if failed {
		os.Exit(1)
	}
}
