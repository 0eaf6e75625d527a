package kubescheduler

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// NewSchedulerCommand returns the command kube-scheduler with one flag more, --tracing-config. It takes the options of
// app.NewSchedulerCommand, so a main that registers plugins only changes the package of this call.
func NewSchedulerCommand(registry ...app.Option) *cobra.Command {
	opts := options.NewOptions()
	tracingConfig := ""
	command := &cobra.Command{
		Use:  "podtrail-kube-scheduler",
		Long: "kube-scheduler " + KubernetesMinor + ", whose scheduling attempts are traced as KEP-5927 defines it.",
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(command *cobra.Command, _ []string) error {
			return run(command, opts, tracingConfig, registry)
		},
		SilenceUsage: true,
	}
	sets := opts.Flags
	sets.FlagSet("tracing").StringVar(&tracingConfig, "tracing-config", "",
		"File of kind SchedulerTracing with feature gates and the section tracing of KEP-5927. Without it nothing is traced.")
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cliflag.SetUsageAndHelpFunc(command, *sets, 0)
	return command
}

func run(command *cobra.Command, opts *options.Options, tracingConfig string, registry []app.Option) error {
	verflag.PrintAndExitIfRequested()
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(command.Flags())
	if err := setInformerName(opts); err != nil {
		return err
	}
	settings, head, err := readFiles(tracingConfig, opts.ConfigFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, sched, err := app.Setup(ctx, opts, registry...)
	if err != nil {
		return err
	}
	identity := ""
	if config.LeaderElection != nil {
		identity = config.LeaderElection.Lock.Identity()
	}
	tracing, err := Start(ctx, settings, identity)
	if err != nil {
		return err
	}
	tracing.useGlobally()
	generation, err := Generation(&config.ComponentConfig)
	if err != nil {
		return err
	}
	tracing.Instrument(sched, generation, head)
	// A leader exits as soon as its context ends, so the last spans leave before.
	stopAfter(tracing.Shutdown, cancel)
	defer tracing.Shutdown()
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, config, sched)
}

// stopAfter makes the first signal call last and then cancel, and the second one end the process.
func stopAfter(last, cancel func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		go func() {
			<-signals
			os.Exit(1)
		}()
		last()
		cancel()
	}()
}

func readFiles(tracingConfig, config string) (settings Settings, head map[string]string, err error) {
	if tracingConfig != "" {
		if settings, err = LoadSettings(tracingConfig); err != nil {
			return settings, nil, err
		}
	}
	if config == "" {
		return settings, nil, nil
	}
	content, err := os.ReadFile(config)
	if err != nil {
		return settings, nil, fmt.Errorf("--config: %w", err)
	}
	return settings, ClaimedContext(content), nil
}
