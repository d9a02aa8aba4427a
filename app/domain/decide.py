"""Every command there is, and the decider that answers it."""

from datetime import datetime
from typing import assert_never

from app.domain import adoption, cloud, deadlines, observation, script_decide, service, startup
from app.domain.books import Books
from app.domain.cluster import commands as cluster_commands
from app.domain.cluster import decide as cluster_decide
from app.domain.cluster import joins, learning, preparing, tokens
from app.domain.envelope import Decision
from app.domain.instance import commands as instance_commands
from app.domain.instance import decide as instance_decide
from app.domain.instance import ladder
from app.domain.nodegroup import commands as group_commands
from app.domain.nodegroup import decide as group_decide
from app.domain.nodegroup import joining, operate

NodeGroupCommand = (
    group_commands.ApplyConfiguration
    | group_commands.IncreaseSize
    | group_commands.DecreaseTargetSize
    | group_commands.DeleteNodes
    | group_commands.PauseNodeGroup
    | group_commands.ResumeNodeGroup
    | group_commands.DrainNodeGroup
    | group_commands.RecordJoined
)
InstanceCommand = (
    instance_commands.AttemptCreate
    | instance_commands.RecordCreated
    | instance_commands.RecordCreateRefused
    | instance_commands.RecordCreateUnknown
    | instance_commands.RuleOutCreate
    | instance_commands.AttemptDelete
    | instance_commands.RecordDeleteRefused
    | instance_commands.ConfirmEnded
    | instance_commands.LearnProviderId
)
CloudCommand = (
    cloud.RecordCatalogue
    | cloud.RecordUnreachable
    | cloud.RecordSurplus
    | cloud.RecordSurplusGone
    | cloud.RecordVolumeDeleted
    | cloud.RecordBalance
    | cloud.SettleOrphan
)
ClusterCommand = (
    cluster_commands.AttemptNodeRemoval
    | cluster_commands.RecordNodeRemoved
    | cluster_commands.AbandonNodeRemoval
    | joins.ObserveNodes
    | joins.AttemptProviderIdRepair
    | preparing.AttemptNodePreparation
    | preparing.RecordNodePrepared
    | learning.MeasureNodes
    | learning.DiscardTemplates
    | tokens.TokenCommand
)
StartupCommand = service.StartService | startup.RecordRestore | startup.ClaimInstallation
Command = (
    NodeGroupCommand
    | InstanceCommand
    | CloudCommand
    | ClusterCommand
    | script_decide.ScriptCommand
    | observation.ObserveMachines
    | observation.Readopt
    | adoption.AdoptMachines
    | instance_commands.CheckDeadlines
    | service.RejectConfiguration
    | StartupCommand
)


def decide(command: Command, books: Books, now: datetime) -> Decision:
    """The facts that a command adds to the books.

    Raises:
        ProviderError: what the command's decider raises; then nothing happens at all.
    """
    if isinstance(command, NodeGroupCommand):
        return _decide_group(command, books, now)
    if isinstance(command, InstanceCommand):
        return _decide_instance(command, books, now)
    if isinstance(command, CloudCommand):
        return _decide_cloud(command, books, now)
    if isinstance(command, ClusterCommand):
        return _decide_cluster(command, books, now)
    if isinstance(command, script_decide.ScriptCommand):
        return _decide_script(command, books, now)
    if isinstance(command, StartupCommand):
        return _decide_startup(command, books)
    match command:
        case observation.ObserveMachines():
            return observation.observe_machines(command, books, now)
        case observation.Readopt():
            return observation.readopt(command, books)
        case adoption.AdoptMachines():
            return adoption.adopt_machines(command, books)
        case instance_commands.CheckDeadlines():
            return deadlines.check_deadlines(command, books, now)
        case service.RejectConfiguration():
            return service.reject_configuration(command)
        case _:
            assert_never(command)


def _decide_startup(command: StartupCommand, books: Books) -> Decision:
    match command:
        case service.StartService():
            return startup.start_service(command, books)
        case startup.RecordRestore():
            return startup.record_restore(command, books)
        case startup.ClaimInstallation():
            return startup.claim_installation(command, books)
        case _:
            assert_never(command)


def _decide_group(command: NodeGroupCommand, books: Books, now: datetime) -> Decision:
    match command:
        case group_commands.ApplyConfiguration():
            return group_decide.apply_configuration(command, books)
        case group_commands.IncreaseSize():
            return joining.held_back(command, books, now) or group_decide.increase_size(command, books)
        case group_commands.DecreaseTargetSize():
            return group_decide.decrease_target_size(command, books)
        case group_commands.DeleteNodes():
            return joining.with_failures(command, group_decide.delete_nodes(command, books), books, now)
        case group_commands.PauseNodeGroup():
            return operate.pause(command, books)
        case group_commands.ResumeNodeGroup():
            return operate.resume(command, books)
        case group_commands.DrainNodeGroup():
            return operate.drain(command, books)
        case group_commands.RecordJoined():
            return joining.record_joined(command, books)
        case _:
            assert_never(command)


def _decide_instance(command: InstanceCommand, books: Books, now: datetime) -> Decision:
    match command:
        case instance_commands.AttemptCreate():
            return instance_decide.attempt_create(command, books, now)
        case instance_commands.RecordCreated():
            return instance_decide.record_created(command, books)
        case instance_commands.RecordCreateRefused():
            return ladder.record_create_refused(command, books, now)
        case instance_commands.RecordCreateUnknown():
            return instance_decide.record_create_unknown(command, books)
        case instance_commands.RuleOutCreate():
            return instance_decide.rule_out_create(command, books)
        case instance_commands.AttemptDelete():
            return instance_decide.attempt_delete(command, books, now)
        case instance_commands.RecordDeleteRefused():
            return instance_decide.record_delete_refused(command, books, now)
        case instance_commands.ConfirmEnded():
            return instance_decide.confirm_ended(command, books, now)
        case instance_commands.LearnProviderId():
            return instance_decide.learn_provider_id(command, books)
        case _:
            assert_never(command)


def _decide_cloud(command: CloudCommand, books: Books, now: datetime) -> Decision:
    match command:
        case cloud.RecordCatalogue():
            return cloud.record_catalogue(command, books.cloud)
        case cloud.RecordUnreachable():
            return cloud.record_unreachable(command, books.cloud)
        case cloud.RecordSurplus():
            return cloud.record_surplus(command, books.cloud)
        case cloud.RecordSurplusGone():
            return cloud.record_surplus_gone(command, books.cloud, now)
        case cloud.RecordVolumeDeleted():
            return cloud.record_volume_deleted(command)
        case cloud.RecordBalance():
            return cloud.record_balance(command, books.cloud)
        case cloud.SettleOrphan():
            return cloud.settle_orphan(command, books.cloud, now)
        case _:
            assert_never(command)


def _decide_cluster(command: ClusterCommand, books: Books, now: datetime) -> Decision:
    if isinstance(command, tokens.TokenCommand):
        return _decide_token(command, books, now)
    match command:
        case cluster_commands.AttemptNodeRemoval():
            return cluster_decide.attempt_node_removal(command, books)
        case cluster_commands.RecordNodeRemoved():
            return cluster_decide.record_node_removed(command, books)
        case cluster_commands.AbandonNodeRemoval():
            return cluster_decide.abandon_node_removal(command, books)
        case joins.ObserveNodes():
            return joins.observe_nodes(command, books, now)
        case joins.AttemptProviderIdRepair():
            return joins.attempt_provider_id_repair(command, books)
        case preparing.AttemptNodePreparation():
            return preparing.attempt_node_preparation(command, books)
        case preparing.RecordNodePrepared():
            return preparing.record_node_prepared(command, books)
        case learning.MeasureNodes():
            return learning.measure_nodes(command, books, now)
        case learning.DiscardTemplates():
            return learning.discard_templates(command, books)
        case _:
            assert_never(command)


def _decide_token(command: tokens.TokenCommand, books: Books, now: datetime) -> Decision:
    match command:
        case tokens.AttemptJoinToken():
            return tokens.attempt_join_token(command, books, now)
        case tokens.RecordJoinTokenMinted():
            return tokens.record_join_token_minted(command, books)
        case tokens.RecordJoinTokenRevoked():
            return tokens.record_join_token_revoked(command, books)
        case tokens.ObserveJoinTokens():
            return tokens.observe_join_tokens(command, books, now)
        case _:
            assert_never(command)


def _decide_script(command: script_decide.ScriptCommand, books: Books, now: datetime) -> Decision:
    match command:
        case script_decide.PrepareScript():
            return script_decide.prepare_script(command, books)
        case script_decide.RecordScriptUploaded():
            return script_decide.record_script_uploaded(command, books)
        case script_decide.AttemptScriptDelete():
            return script_decide.attempt_script_delete(books, now)
        case script_decide.RecordScriptDeleted():
            return script_decide.record_script_deleted(command, books)
        case script_decide.RecordFetch():
            return script_decide.record_fetch(command, books)
        case _:
            assert_never(command)
