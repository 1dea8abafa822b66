"""The command line as a whole: every command and its name.

A command is a function, or a group of them, in a file of its own, and one line below. NumPy and whatever else takes
long to import waits until a command runs, so that ``countveil --help`` answers at once.
"""

import atexit
import gc
from typing import Annotated

import typer

from countveil import __version__
from countveil.cli.audit import audit_noise
from countveil.cli.browse import browse
from countveil.cli.checklist import checklist
from countveil.cli.collect import collect_reports
from countveil.cli.compare import compare_models
from countveil.cli.counts import counts
from countveil.cli.demo import demo_app
from countveil.cli.export import export
from countveil.cli.fit import fit_app
from countveil.cli.fit_dynamic import fit_dynamic
from countveil.cli.forecast import forecast
from countveil.cli.import_reports import import_table
from countveil.cli.join import join_releases
from countveil.cli.look import look
from countveil.cli.output import say
from countveil.cli.plan import plan_study
from countveil.cli.plan_trend import plan_trend
from countveil.cli.privatize import privatize_counts
from countveil.cli.receive import receive_reports
from countveil.cli.relabel import relabel
from countveil.cli.report import report
from countveil.cli.show import show
from countveil.cli.study import study_app

app = typer.Typer(
    help="Bayesian models of counts that were released with noise, rounding or hidden cells.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)
# Python looks for garbage once more when it ends: through all that was imported and compiled, a third of a second.
atexit.register(gc.freeze)
DATA, MODELS, RESULTS, STUDIES = "From counts to a release", "Models", "Results", "Studies with participants"
"""Panels of ``countveil --help``, in the order of an analysis."""

app.add_typer(demo_app, name="demo")
app.command("privatize", rich_help_panel=DATA)(privatize_counts)
app.command("look", rich_help_panel=DATA)(look)
app.command("import", rich_help_panel=DATA)(import_table)
app.command("join", rich_help_panel=DATA)(join_releases)
app.command("audit", rich_help_panel=DATA)(audit_noise)
fit_app.command("dynamic")(fit_dynamic)
app.add_typer(fit_app, name="fit", rich_help_panel=MODELS)
app.command("compare", rich_help_panel=MODELS)(compare_models)
app.command("forecast", rich_help_panel=MODELS)(forecast)
app.command("show", rich_help_panel=RESULTS)(show)
app.command("counts", rich_help_panel=RESULTS)(counts)
app.command("report", rich_help_panel=RESULTS)(report)
app.command("browse", rich_help_panel=RESULTS)(browse)
app.command("relabel", rich_help_panel=RESULTS)(relabel)
app.command("export", rich_help_panel=RESULTS)(export)
app.command("checklist", rich_help_panel=RESULTS)(checklist)
app.command("plan", rich_help_panel=STUDIES)(plan_study)
app.command("plan-trend", rich_help_panel=STUDIES)(plan_trend)
app.add_typer(study_app, name="study", rich_help_panel=STUDIES)
app.command("receive", rich_help_panel=STUDIES)(receive_reports)
app.command("collect", rich_help_panel=STUDIES)(collect_reports)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        say(f"countveil {__version__}")
        raise typer.Exit()


Version = Annotated[
    bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def main(version: Version = False) -> None:
    """Counts under local privacy: exact noise for their owner, posteriors for an analyst."""
