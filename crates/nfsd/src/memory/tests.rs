//! Tests of the promises of a tree in memory: its bound, and that threads meet only where they must.

use super::*;
use crate::store::Name;

fn at(directory: Handle, name: &str) -> DirOpArgs<'_> {
    DirOpArgs { directory, name: Name::new(name.as_bytes()).expect("a name") }
}

fn make(store: &MemoryStore, name: &str) -> Result<Handle> {
    Ok(store.make(at(store.root(), name), New::Guarded { attributes: &sattr3::default() })?.handle)
}

#[test]
fn it_takes_no_more_memory_than_it_was_given_and_gives_it_back() {
    let store = MemoryStore::new(100 << 10);
    let all = store.space().expect("is known");
    assert_eq!((all.bytes, all.bytes_free), (100 << 10, 100 << 10));
    let file = make(&store, "f").expect("is made");
    store.write(file, 0, &[1; 90 << 10], stable_how::UNSTABLE).expect("fits");
    let full = store.write(file, 96 << 10, &[1], stable_how::UNSTABLE);
    assert_eq!(full.expect_err("is full"), nfsstat3::NFS3ERR_NOSPC);
    let made = (0..100).map(|n| make(&store, &format!("g{n}"))).take_while(|made| made.is_ok()).count();
    assert!((1..10).contains(&made), "{made} more files");
    let cut = sattr3 { size: Nfs3Option::Some(0), ..sattr3::default() };
    store.set_attributes(file, &cut, None).expect("is cut");
    make(&store, "again").expect("there is room again");
    for name in (0..made).map(|n| format!("g{n}")).chain(["f".to_owned(), "again".to_owned()]) {
        store.remove(at(store.root(), &name), Removed::File).expect("is removed");
    }
    assert_eq!(store.space().expect("is known"), all);
}

#[test]
fn threads_that_make_move_read_and_remove_at_once_lose_nothing() {
    let store = MemoryStore::new(64 << 20);
    let shared = make(&store, "shared").expect("is made");
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..200 {
                    let old = format!("t{thread}-{round}");
                    let new = format!("moved{thread}-{round}");
                    let file = make(store, &old).expect("is made");
                    store.write(file, 0, &[thread; 100], stable_how::UNSTABLE).expect("is written");
                    store.write(shared, u64::from(thread) * 100, &[thread; 100], stable_how::UNSTABLE).expect("too");
                    store.rename(at(store.root(), &old), at(store.root(), &new)).expect("moves");
                    let mut data = Vec::new();
                    store.read(file, 0, 200, &mut data).expect("is read");
                    assert_eq!(data, [thread; 100]);
                    let mut count = 0;
                    store
                        .list(store.root(), 0, &mut |_| {
                            count += 1;
                            true
                        })
                        .expect("is listed");
                    assert!(count >= 4, "{count}");
                    store.remove(at(store.root(), &new), Removed::File).expect("is removed");
                }
            });
        }
    });
    let mut data = Vec::new();
    store.read(shared, 0, 400, &mut data).expect("is read");
    assert_eq!(data, [[0; 100], [1; 100], [2; 100], [3; 100]].concat());
    store.remove(at(store.root(), "shared"), Removed::File).expect("is removed");
    let space = store.space().expect("is known");
    assert_eq!(space.bytes, space.bytes_free);
}
