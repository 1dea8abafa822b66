"""The command line as a whole: every command and its name.

A command is a function, or a group of them, in a file of its own, and one line below. NumPy and whatever else takes
long to import waits until a command runs, so that ``countveil --help`` answers at once.
"""

from typing import Annotated

import typer

from countveil import __version__
from countveil.cli.audit import audit_noise
from countveil.cli.browse import browse
from countveil.cli.checklist import checklist
from countveil.cli.collect import collect_reports
from countveil.cli.compare import compare_models
from countveil.cli.demo import demo_app
from countveil.cli.export import export
from countveil.cli.fit import fit_app
from countveil.cli.fit_dynamic import fit_dynamic
from countveil.cli.forecast import forecast
from countveil.cli.import_reports import import_table
from countveil.cli.join import join_releases
from countveil.cli.look import look
from countveil.cli.plan import plan_study
from countveil.cli.plan_trend import plan_trend
from countveil.cli.privatize import privatize_counts
from countveil.cli.receive import receive_reports
from countveil.cli.report import report
from countveil.cli.say import say
from countveil.cli.show import show
from countveil.cli.study import study_app

app = typer.Typer(
    help="Counts under local privacy: exact noise for their owner, posteriors from the noisy reports for an analyst.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)
app.command("collect")(collect_reports)
app.command("audit")(audit_noise)
app.command("receive")(receive_reports)
app.command("plan")(plan_study)
app.command("plan-trend")(plan_trend)
app.command("compare")(compare_models)
app.command("report")(report)
app.command("show")(show)
app.command("export")(export)
app.command("checklist")(checklist)
app.command("browse")(browse)
app.command("privatize")(privatize_counts)
app.command("look")(look)
app.command("import")(import_table)
app.command("join")(join_releases)
fit_app.command("dynamic")(fit_dynamic)
app.command("forecast")(forecast)
app.add_typer(fit_app, name="fit")
app.add_typer(study_app, name="study")
app.add_typer(demo_app, name="demo")


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
