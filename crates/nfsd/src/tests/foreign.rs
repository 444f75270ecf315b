//! With a client that others wrote: nfs3_client, over TCP.

use super::*;
use nfs3_client::tokio::TokioIo;
use nfs3_client::{MountClient, Nfs3Client};
use nfs3_types::mount::dirpath;
use nfs3_types::nfs3::{
    ACCESS3args, COMMIT3args, CREATE3args, FSINFO3args, FSSTAT3args, GETATTR3args, LINK3args, LOOKUP3args, MKDIR3args,
    Nfs3Result, PATHCONF3args, READ3args, READDIR3args, READDIRPLUS3args, READLINK3args, REMOVE3args, RENAME3args,
    RMDIR3args, SETATTR3args, SYMLINK3args, WRITE3args, cookieverf3, symlinkdata3,
};

fn place<'a>(dir: &nfs_fh3, name: &'a str) -> diropargs3<'a> {
    diropargs3 { dir: dir.clone(), name: name.as_bytes().into() }
}

#[tokio::test]
async fn every_procedure_serves_a_client_of_others() {
    let kept = tempfile::tempdir().expect("a directory");
    for directory in [None, Some(kept.path().to_owned())] {
        let service = NfsService { directory: directory.clone(), ..NfsService::default() };
        let server = Server::start(Transport::Tcp, LOOPBACK, service.programs(1).expect("serves")).expect("listens");
        let connect = async || TokioIo::new(tokio::net::TcpStream::connect(server.address()).await.expect("connects"));

        let mut mount = MountClient::new(connect().await);
        mount.null().await.expect("null");
        let mounted = mount.mnt(dirpath(Opaque::borrowed(b"/"))).await.expect("mnt");
        let exports = mount.export().await.expect("export").into_inner();
        assert_eq!(exports.iter().map(|export| export.ex_dir.0.to_vec()).collect::<Vec<_>>(), [b"/"]);
        assert_eq!(mount.dump().await.expect("dump").into_inner().len(), 1);
        let root = nfs_fh3 { data: mounted.fhandle.0.clone() };

        let mut nfs = Nfs3Client::new(connect().await);
        nfs.null().await.expect("null");
        let info = nfs.fsinfo(&FSINFO3args { fsroot: root.clone() }).await.expect("fsinfo").unwrap();
        assert_eq!(info.rtmax, 1 << 20);

        let how = createhow3::GUARDED(sattr3 { mode: Nfs3Option::Some(0o640), ..sattr3::default() });
        let created = nfs.create(&CREATE3args { where_: place(&root, "f"), how }).await.expect("create").unwrap();
        let file = created.obj.unwrap();
        let data: Vec<u8> = (0..300_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let mut written = 0;
        while written < data.len() {
            let part = &data[written..data.len().min(written + 65_536)];
            let args = WRITE3args {
                file: file.clone(),
                offset: written as u64,
                count: part.len() as u32,
                stable: stable_how::UNSTABLE,
                data: Opaque::borrowed(part),
            };
            let done = nfs.write(&args).await.expect("write").unwrap();
            assert_eq!((done.count as usize, done.committed), (part.len(), stable_how::UNSTABLE));
            written += part.len();
        }
        let args = COMMIT3args { file: file.clone(), offset: 0, count: 0 };
        nfs.commit(&args).await.expect("commit").unwrap();
        let args = READ3args { file: file.clone(), offset: 0, count: 400_000 };
        let read = nfs.read(&args).await.expect("read").unwrap();
        assert!(read.eof && read.count == 300_000 && read.data.0[..] == data[..]);
        let args = READ3args { file: file.clone(), offset: 299_999, count: 8_192 };
        let read = nfs.read(&args).await.expect("read").unwrap();
        assert_eq!((read.eof, &read.data.0[..]), (true, &data[299_999..]));

        let args = MKDIR3args { where_: place(&root, "d"), attributes: sattr3::default() };
        let inner = nfs.mkdir(&args).await.expect("mkdir").unwrap().obj.unwrap();
        let text = symlinkdata3 { symlink_attributes: sattr3::default(), symlink_data: b"f"[..].into() };
        let link = nfs.symlink(&SYMLINK3args { where_: place(&root, "l"), symlink: text }).await.expect("symlink");
        let args = READLINK3args { symlink: link.unwrap().obj.unwrap() };
        assert_eq!(nfs.readlink(&args).await.expect("readlink").unwrap().data.as_ref(), b"f");
        let args = LOOKUP3args { what: place(&root, "f") };
        assert_eq!(nfs.lookup(&args).await.expect("lookup").unwrap().object, file);
        let args = LOOKUP3args { what: place(&inner, "..") };
        assert_eq!(nfs.lookup(&args).await.expect("lookup").unwrap().object, root);
        let args = ACCESS3args { object: file.clone(), access: 0x3f };
        assert_eq!(nfs.access(&args).await.expect("access").unwrap().access, 0x2d);
        let size = sattr3 { size: Nfs3Option::Some(1_000), ..sattr3::default() };
        let args = SETATTR3args { object: file.clone(), new_attributes: size, guard: Nfs3Option::None };
        nfs.setattr(&args).await.expect("setattr").unwrap();
        let attributes = nfs.getattr(&GETATTR3args { object: file.clone() }).await.expect("getattr").unwrap();
        let attributes = attributes.obj_attributes;
        assert_eq!((attributes.size, attributes.mode), (1_000, 0o640));

        let args = READDIRPLUS3args {
            dir: root.clone(),
            cookie: 0,
            cookieverf: cookieverf3::default(),
            dircount: 4_096,
            maxcount: 32_768,
        };
        let listed = nfs.readdirplus(&args).await.expect("readdirplus").unwrap();
        assert!(listed.reply.eof);
        let entries = listed.reply.entries.into_inner();
        let names: BTreeSet<Vec<u8>> = entries.iter().map(|entry| entry.name.as_ref().to_vec()).collect();
        assert_eq!(names, [".", "..", "d", "f", "l"].map(|name| name.as_bytes().to_vec()).into());
        let of_file = entries.into_iter().find(|entry| entry.name.as_ref() == b"f").expect("is listed");
        assert_eq!(of_file.name_handle.unwrap(), file);
        assert_eq!(of_file.name_attributes.unwrap().fileid, attributes.fileid);
        let args = READDIR3args { dir: root.clone(), cookie: 0, cookieverf: cookieverf3::default(), count: 4_096 };
        assert_eq!(nfs.readdir(&args).await.expect("readdir").unwrap().reply.entries.into_inner().len(), 5);

        let args = RENAME3args { from: place(&root, "f"), to: place(&inner, "g") };
        nfs.rename(&args).await.expect("rename").unwrap();
        let args = LINK3args { file: file.clone(), link: place(&root, "hard") };
        match nfs.link(&args).await.expect("link") {
            Nfs3Result::Err((status, _)) => assert_eq!(status, nfsstat3::NFS3ERR_NOTSUPP),
            done => panic!("{done:?}"),
        }
        nfs.fsstat(&FSSTAT3args { fsroot: root.clone() }).await.expect("fsstat").unwrap();
        let args = PATHCONF3args { object: root.clone() };
        assert_eq!(nfs.pathconf(&args).await.expect("pathconf").unwrap().name_max, 255);
        nfs.remove(&REMOVE3args { object: place(&inner, "g") }).await.expect("remove").unwrap();
        nfs.remove(&REMOVE3args { object: place(&root, "l") }).await.expect("remove").unwrap();
        nfs.rmdir(&RMDIR3args { object: place(&root, "d") }).await.expect("rmdir").unwrap();
        match nfs.getattr(&GETATTR3args { object: file }).await.expect("getattr") {
            Nfs3Result::Err((status, _)) => assert_eq!(status, nfsstat3::NFS3ERR_STALE),
            done => panic!("{done:?}"),
        }
        mount.umnt(dirpath(Opaque::borrowed(b"/"))).await.expect("umnt");
        assert_eq!(mount.dump().await.expect("dump").into_inner().len(), 0);
    }
    assert_eq!(std::fs::read_dir(kept.path()).expect("is there").count(), 0, "all that was made was removed");
}
