//! Saves and reads random layouts.

use proptest::prelude::*;

use super::*;

const ROOM: Area = Area::new(15, 0, 120, 40);

fn pane(number: u8) -> PaneId {
    PaneId::new(&number.to_string())
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8, SplitDirection),
    Remove(u8),
    Resize(u8, Side, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let direction = prop_oneof![Just(SplitDirection::Right), Just(SplitDirection::Down)];
    let side = prop_oneof![Just(Side::Left), Just(Side::Right), Just(Side::Up), Just(Side::Down)];
    let step = prop_oneof![
        (any::<u8>(), direction).prop_map(|(beside, direction)| Step::Add(beside, direction)),
        any::<u8>().prop_map(Step::Remove),
        (any::<u8>(), side, 0..200u16).prop_map(|(pane, side, cells)| Step::Resize(pane, side, cells)),
    ];
    prop::collection::vec(step, 0..30)
}

proptest! {
    #[test]
    fn the_panes_fill_the_room_and_do_not_overlap(
        steps in steps(), width in 0..200u16, height in 0..80u16,
    ) {
        let room = Area::new(3, 1, width, height);
        let mut layout = Layout::default();
        let mut open: Vec<PaneId> = Vec::new();
        for (number, step) in (0..).zip(steps) {
            let chosen = |index: u8| open.get(usize::from(index) % open.len().max(1)).cloned();
            match step {
                Step::Add(beside, direction) => {
                    layout.add(pane(number), chosen(beside).as_ref(), direction);
                    open.push(pane(number));
                }
                Step::Remove(index) => if let Some(gone) = chosen(index) {
                    layout.remove(&gone);
                    open.retain(|one| *one != gone);
                },
                Step::Resize(index, side, cells) => if let Some(one) = chosen(index) {
                    layout.resize(&one, side, cells, room);
                },
            }
        }
        let (room, fits) = (layout.enlarged(room), layout.fits(room));
        prop_assert!(layout.fits(room), "{:?}", room);
        let areas = layout.areas(room);
        prop_assert!(open.len() > 1 || fits, "one has what there is");
        if open.len() > 1 {
            let is_seen = |area: &Area| area.width >= LEAST.width && area.height >= LEAST.height;
            prop_assert!(areas.iter().all(|(_, area)| is_seen(area)), "{:?}", areas);
        }
        let mut listed: Vec<PaneId> = areas.iter().map(|(id, _)| id.clone()).collect();
        prop_assert_eq!(&layout.panes(), &listed);
        listed.sort();
        open.sort();
        prop_assert_eq!(&listed, &open);
        let cells = |area: &Area| u32::from(area.width) * u32::from(area.height);
        if !open.is_empty() {
            prop_assert_eq!(areas.iter().map(|(_, area)| cells(area)).sum::<u32>(), cells(&room));
        }
        for (index, (_, one)) in areas.iter().enumerate() {
            prop_assert!(one.x >= room.x && one.right() <= room.right());
            prop_assert!(one.y >= room.y && one.bottom() <= room.bottom());
            for (_, other) in &areas[..index] {
                let apart = one.right() <= other.x || other.right() <= one.x
                    || one.bottom() <= other.y || other.bottom() <= one.y
                    || one.is_empty() || other.is_empty();
                prop_assert!(apart, "{one:?} {other:?}");
            }
        }
        let text = serde_json::to_string(&layout).unwrap();
        prop_assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), layout);
    }
}

#[test]
fn a_neighbour_is_what_touches_that_side() {
    let mut layout = Layout::default();
    layout.add(pane(1), None, SplitDirection::Right);
    layout.add(pane(2), Some(&pane(1)), SplitDirection::Right);
    layout.add(pane(3), Some(&pane(2)), SplitDirection::Down);
    let at = |from, side| layout.neighbour(&pane(from), side, ROOM);
    assert_eq!(at(1, Side::Right), Some(pane(2)));
    assert_eq!(at(3, Side::Left), Some(pane(1)));
    assert_eq!(at(2, Side::Down), Some(pane(3)));
    assert_eq!(at(3, Side::Up), Some(pane(2)));
    assert_eq!(at(1, Side::Left), None);
}

#[test]
fn a_border_moves_by_the_cells_that_were_asked_for() {
    let mut layout = Layout::default();
    layout.add(pane(1), None, SplitDirection::Right);
    layout.add(pane(2), Some(&pane(1)), SplitDirection::Right);
    let width = |layout: &Layout| layout.areas(ROOM)[0].1.width;
    assert_eq!(width(&layout), 60);
    layout.resize(&pane(2), Side::Left, 7, ROOM);
    assert_eq!(width(&layout), 53);
    layout.resize(&pane(1), Side::Right, 1, ROOM);
    assert_eq!(width(&layout), 54);
    layout.resize(&pane(1), Side::Left, 500, ROOM);
    assert_eq!(width(&layout), LEAST.width);
}

#[test]
fn a_layout_of_many_splits_is_read_as_it_was_written() {
    let mut layout = Layout::default();
    for number in 0..=u8::MAX {
        let direction = if number % 3 == 0 { SplitDirection::Down } else { SplitDirection::Right };
        let beside = pane(number.saturating_sub(1));
        layout.add(pane(number), Some(&beside).filter(|_| number % 5 > 0), direction);
    }
    layout.resize(&pane(7), Side::Right, 3, ROOM);
    let text = serde_json::to_string(&layout).unwrap();
    assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), layout);
    assert_eq!(serde_json::from_str::<Layout>("[]").unwrap(), Layout::default());
}

#[test]
fn a_layout_of_the_first_version_is_read_and_one_with_missing_parts_is_empty() {
    let tree = r#"{"split":{"direction":"down","share":300,"first":{"pane":"1"},"second":{"pane":"2"}}}"#;
    let parts = r#"[{"split":{"direction":"down","share":300}},{"pane":"1"},{"pane":"2"}]"#;
    let read = |text: &str| serde_json::from_str::<Layout>(text).unwrap();
    assert_eq!((read(tree), read(tree).panes()), (read(parts), vec![pane(1), pane(2)]));
    assert_eq!(read("null"), Layout::default());
    assert_eq!(read(r#"[{"split":{"direction":"down","share":300}},{"pane":"1"}]"#), Layout::default());
}
