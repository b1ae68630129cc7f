use super::*;

const ONE: ConnectionId = ConnectionId(1);
const TWO: ConnectionId = ConnectionId(2);

const DRAWS: HostAbilities = HostAbilities { can_focus: false, draws_rings: true, emulates: false };
fn attach(hosts: &mut AttachedHosts, connection: ConnectionId) {
    attach_with(hosts, connection, DRAWS);
}

fn attach_with(hosts: &mut AttachedHosts, connection: ConnectionId, abilities: HostAbilities) {
    hosts.handle(connection, HostRequest::Attach { name: "scripted".to_owned(), abilities }).unwrap();
}

fn surface_of(id: &str) -> SurfaceParams {
    let workspace_id = Some("w".to_owned());
    let surface_id = id.to_owned();
    SurfaceParams {
        surface_id,
        workspace_id,
        tty: None,
        title: None,
        place: None,
        parent: None,
        reports_looks: true,
    }
}

fn open(hosts: &mut AttachedHosts, connection: ConnectionId, surface: &str) -> Vec<SurfaceId> {
    hosts.handle(connection, HostRequest::Opened(vec![surface_of(surface)])).unwrap().changed
}

fn looks(surface: &str) -> HostRequest {
    let view = ViewParams { client: "main".to_owned(), surface_id: surface.to_owned() };
    HostRequest::Views(ViewsParams { views: vec![view], is_complete: true, present: None, by_person: true })
}

#[test]
fn focus_is_known_from_the_first_report_on() {
    let mut hosts = AttachedHosts::default();
    assert_eq!(hosts.handle(ONE, looks("a")).unwrap_err().code, "invalid_request");
    attach(&mut hosts, ONE);
    let surface = SurfaceId::new("a");
    assert_eq!(open(&mut hosts, ONE, "a"), std::slice::from_ref(&surface));
    assert!(!hosts.reports_focus(&surface));
    assert_eq!(hosts.handle(ONE, looks("a")).unwrap().changed, std::slice::from_ref(&surface));
    assert!(hosts.reports_focus(&surface));
    assert_eq!(hosts.handle(ONE, looks("a")).unwrap().changed, []);
    let incomplete = ViewsParams { views: Vec::new(), is_complete: false, present: None, by_person: true };
    assert_eq!(
        hosts.handle(ONE, HostRequest::Views(incomplete)).unwrap().changed,
        std::slice::from_ref(&surface)
    );
    assert!(!hosts.reports_focus(&surface), "a terminal does not report");
}

#[test]
fn of_two_hosts_of_a_surface_each_does_what_it_can() {
    let mut hosts = AttachedHosts::default();
    attach_with(&mut hosts, ONE, HostAbilities { draws_rings: false, can_focus: true, ..DRAWS });
    let surface = SurfaceId::new("a");
    let unknown = SurfaceParams { reports_looks: false, ..surface_of("a") };
    hosts.handle(ONE, HostRequest::Opened(vec![unknown])).unwrap();
    hosts.handle(ONE, looks("b")).unwrap();
    assert!(!hosts.reports_focus(&surface), "not of this surface");
    assert_eq!((hosts.host_of(&surface), hosts.drawing(&surface)), (Some(ONE), None));
    attach(&mut hosts, TWO);
    open(&mut hosts, TWO, "a");
    assert_eq!((hosts.host_of(&surface), hosts.drawing(&surface)), (Some(TWO), Some(TWO)));
    assert_eq!(hosts.focusing(&surface), Some(ONE));
    hosts.handle(TWO, looks("a")).unwrap();
    assert!(hosts.reports_focus(&surface));
    let changes = hosts.detach(TWO);
    assert_eq!((changes.changed, changes.gone), (vec![surface.clone()], Vec::new()));
    assert!(!hosts.reports_focus(&surface));
}

#[test]
fn a_host_may_leave_the_workspace_to_what_its_surfaces_send() {
    let mut hosts = AttachedHosts::default();
    attach(&mut hosts, ONE);
    let surface = SurfaceId::new("a");
    let params = SurfaceParams { workspace_id: None, title: Some("vim".to_owned()), ..surface_of("a") };
    hosts.handle(ONE, HostRequest::Opened(vec![params])).unwrap();
    let workspace = |elsewhere| hosts.info(&surface, elsewhere).unwrap().workspace.to_string();
    assert!(!hosts.names_workspace(&surface));
    assert_eq!(workspace(None), "repo:global");
    let elsewhere = SurfaceInfo {
        surface: surface.clone(),
        workspace: WorkspaceId::new("repo:x"),
        tty: None,
        host: "terminal".to_owned(),
        title: None,
        place: None,
        parent: None,
    };
    assert_eq!(workspace(Some(elsewhere)), "repo:x");
    assert_eq!(hosts.info(&surface, None).unwrap().title.as_deref(), Some("vim"));
}

#[test]
fn what_a_host_said_ends_with_its_connection() {
    let mut hosts = AttachedHosts::default();
    for (connection, surface) in [(ONE, "a"), (ONE, "shared"), (TWO, "shared")] {
        attach(&mut hosts, connection);
        open(&mut hosts, connection, surface);
    }
    let changes = hosts.detach(ONE);
    assert_eq!(changes.gone, [SurfaceId::new("a")]);
    assert_eq!(changes.events, [Event::HostGone { host: 1 }]);
    assert_eq!(hosts.detach(ONE), HostChanges::default());
    assert_eq!(hosts.surfaces().count(), 1);
    let closed = HostRequest::Closed { surface_id: "shared".to_owned() };
    assert_eq!(hosts.handle(TWO, closed).unwrap().gone, [SurfaceId::new("shared")]);
}

#[test]
fn what_a_host_may_say_is_bounded() {
    let mut hosts = AttachedHosts::default();
    attach(&mut hosts, ONE);
    for number in 0..MAX_SURFACES {
        open(&mut hosts, ONE, &number.to_string());
    }
    let one_more = HostRequest::Opened(vec![surface_of("0"), surface_of("one more")]);
    assert_eq!(hosts.handle(ONE, one_more).unwrap_err().code, "busy");
    let many = |count: usize| {
        let view = |_| ViewParams { client: "c".to_owned(), surface_id: "0".to_owned() };
        let views = (0..count).map(view).collect();
        HostRequest::Views(ViewsParams { views, is_complete: true, present: None, by_person: true })
    };
    assert!(hosts.handle(ONE, many(MAX_VIEWS)).is_ok());
    assert_eq!(hosts.handle(ONE, many(MAX_VIEWS + 1)).unwrap_err().code, "invalid_params");
    assert_eq!(hosts.handle(ONE, looks(&"x".repeat(MAX_NAME + 1))).unwrap_err().code, "invalid_params");
    assert_eq!(hosts.handle(ONE, looks("")).unwrap_err().code, "invalid_params");
}

#[test]
fn a_text_that_is_too_long_to_be_shown_is_cut_and_its_surface_is_there() {
    let mut hosts = AttachedHosts::default();
    attach(&mut hosts, ONE);
    let long =
        SurfaceParams {
            title: Some("日".repeat(1000)), place: Some("漢".repeat(200)), ..surface_of("long")
        };
    let without = SurfaceParams { title: Some(String::new()), ..surface_of("without") };
    hosts.handle(ONE, HostRequest::Opened(vec![long, without])).unwrap();
    let shown = |id: &str| {
        let id = SurfaceId::new(id);
        let surface = hosts.known(&id).next().unwrap();
        (surface.title.clone(), surface.place.clone())
    };
    assert_eq!(shown("long"), (Some("日".repeat(341)), Some("漢".repeat(200))));
    assert_eq!(shown("without"), (None, None));
}

#[test]
fn the_newest_are_remembered_and_no_more() {
    let mut heard = RecentReports::default();
    assert!(heard.is_new("a") && !heard.is_new("a") && heard.is_new("b"));
    for number in 0..MAX_REPORTS {
        assert!(heard.is_new(&number.to_string()));
    }
    assert!(heard.is_new("a"), "it is too long ago");
    assert_eq!(heard.0.len(), MAX_REPORTS);
    let long = "x".repeat(MAX_ID + 1);
    assert!(heard.is_new(&long) && heard.is_new(&long) && heard.is_new("") && heard.is_new(""));
}
